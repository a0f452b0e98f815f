"""controller-runtime's own suites, unmodified, on the programs of `podlife envtest`.

With PODLIFE_ECOSYSTEM=all every suite that starts an API server runs, otherwise those of `make real-parts`. A spec that
does not pass must be listed in docs/parity.md, and a listed one must not pass.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from podlife.envtest import kube_apiserver, write_assets
from tests.kit.real_parts import ROOT, part, tools
from tests.real.conftest import require

BEGIN, END = "<!-- envtest: begin -->", "<!-- envtest: end -->"
_ALL = os.environ.get("PODLIFE_ECOSYSTEM") == "all"
# By the name of the program: the package it tests.
_SUITES: Mapping[str, str] = {
    name: package for name, package in tools().SUITES.items() if _ALL or name in tools().PARTS
}
# What needs more than an API server.
_SKIPPED = {
    # Downloads kube-apiserver v1.28, which could still do without aggregated discovery.
    "client/apiutil": ["-test.skip=/aggregatedDiscovery=false"],
    # Starts scripts, which are not executable in a Go module's archive.
    "internal/testing/controlplane": ["-ginkgo.skip=on (a binary|binaries)"],
}
_SUITE_SECONDS = 900
_PATIENCE = {
    "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT": "180s",
    "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT": "60s",
    # Unless a spec says otherwise, it is one second.
    "GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT": "60s",
}


@pytest.fixture(scope="module")
def sources() -> Path:
    """Where Go keeps the module: a suite runs in the folder of its package, where its files are."""
    module = "sigs.k8s.io/controller-runtime"
    done = subprocess.run(
        ["go", "mod", "download", "-json", module],
        cwd=tools().CONTROLLER_RUNTIME_MODULE,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Path(json.loads(done.stdout)["Dir"])


@pytest.mark.parametrize("program", _SUITES)
def test_the_suite_of_a_package_passes_but_for_what_is_listed(
    program: str, sources: Path, tmp_path: Path
) -> None:
    if _ALL:
        tools().prepare([program])
    require(program, "kubectl")
    package = _SUITES[program]
    assets, report = tmp_path / "assets", tmp_path / "report.json"
    write_assets(assets)
    if not (assets / "kubectl").exists():
        (assets / "kubectl").symlink_to(part("kubectl"))
    # ginkgo ends what takes too long, and stops the servers.
    ginkgo = [f"-ginkgo.json-report={report}", f"-ginkgo.timeout={_SUITE_SECONDS}s", "-ginkgo.no-color"]
    output = tmp_path / "output.log"
    command = [str(part(program)), *ginkgo, *_SKIPPED.get(package, ())]
    code = _run(command, sources / "pkg" / package, assets, output)
    if not report.exists() and "address already in use" in output.read_text():
        # Specs of pkg/webhook listen on one port; if the server of the last one still does, the suite panics.
        code = _run(command, sources / "pkg" / package, assets, output)
    end = output.read_text()[-6000:]
    assert report.exists(), end
    passed, failed = _outcome(json.loads(report.read_text()))
    assert failed == _listed(package), end
    assert code == (1 if failed else 0), end
    assert passed or failed or package == "client/apiutil", end


def test_the_flags_that_are_known_are_those_of_kube_apiserver() -> None:
    require("kube-apiserver")
    shown = subprocess.run(
        [part("kube-apiserver"), "--help"], capture_output=True, text=True, timeout=60
    ).stdout
    theirs = set(re.findall(r"^ +(?:-., )?--([a-z0-9-]+)", shown, re.MULTILINE)) - {"help", "version"}
    ours = Path(kube_apiserver.__file__).with_name("kube_apiserver_flags.txt").read_text()
    assert {name.rstrip("=") for name in ours.split()} == theirs


def _run(command: list[str], folder: Path, assets: Path, output: Path) -> int:
    with output.open("w") as log:
        suite = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | _PATIENCE | {"KUBEBUILDER_ASSETS": str(assets)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        return suite.wait(_SUITE_SECONDS + 120)
    finally:
        _end_session(suite)


def _end_session(suite: subprocess.Popen[bytes]) -> None:
    """Some specs do not stop the servers that they started, whosever they are."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            pid = int(entry.name)
            if os.getsid(pid) == suite.pid:
                os.kill(pid, signal.SIGKILL)
    suite.wait(60)


def _outcome(report: list[dict[str, Any]]) -> tuple[set[str], set[str]]:
    """The specs that passed, and those that did not; a failure outside of a spec counts as one."""
    passed, failed = set(), set()
    for spec in (spec for suite in report for spec in suite["SpecReports"] or ()):
        words = [*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"]]
        name = " ".join(words) if spec["LeafNodeType"] == "It" else spec["LeafNodeType"]
        if spec["State"] == "passed":
            passed.add(name)
        elif spec["State"] not in ("pending", "skipped"):
            failed.add(name)
    return passed, failed


def _listed(package: str) -> set[str]:
    table = (ROOT / "docs" / "parity.md").read_text().split(BEGIN)[1].split(END)[0]
    rows = (line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `pkg/"))
    return {name for row in rows if row[0] == f"`pkg/{package}`" for name in re.findall(r"`([^`]+)`", row[2])}
