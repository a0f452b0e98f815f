"""The package that `make dist` builds: the same bytes twice, and in an empty environment all that a user needs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.kit.real_parts import ROOT, free_port

SECONDS = 300.0
INHERITED = {
    key: value
    for key, value in os.environ.items()
    if not key.startswith(("PYTHON", "PYTEST", "KUBE", "VIRTUAL_ENV"))
}


def run(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(
        list(map(str, command)),
        # Outside the checkout, whose sources must not be found.
        cwd="/",
        env=INHERITED | environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def build(folder: Path) -> dict[str, bytes]:
    run("make", "--no-print-directory", "-C", ROOT, "dist", f"DIST={folder}")
    return {each.name: each.read_bytes() for each in folder.glob("podlife-*")}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    assert len(build(folder)) == 2
    return folder


def test_a_second_build_has_the_same_bytes(built: Path, tmp_path: Path) -> None:
    assert build(tmp_path) == {each.name: each.read_bytes() for each in built.glob("podlife-*")}


def test_a_cluster_runs_in_an_empty_environment(built: Path, tmp_path: Path) -> None:
    uv, environment = ROOT / ".venv" / "bin" / "uv", tmp_path / "environment"
    [wheel] = built.glob("*.whl")
    run(uv, "venv", "--quiet", environment)
    run(uv, "pip", "install", "--quiet", "--python", environment / "bin" / "python", wheel)
    podlife, data = environment / "bin" / "podlife", tmp_path / "data"
    assert run(podlife, "--version").strip() == f"podlife {wheel.name.split('-')[1]}"
    of_data = ("--data", data)
    run(podlife, "up", "--detach", "--runtime=sim", "--no-ui", f"--port={free_port()}", *of_data)
    try:
        kubeconfig = {"KUBECONFIG": str(data / "admin.kubeconfig")}
        assert run(podlife, "gc", "plan", **kubeconfig) == "Nothing to collect now in any namespace.\n"
        assert "node-2" in run(podlife, "status", *of_data)
    finally:
        run(podlife, "down", "--now", *of_data)
