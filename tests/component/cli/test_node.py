"""`podlife node` as a user types it: what it refuses, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.component.cli.commands import podlife


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ["--name", "Not A Name"],
            ["'Not A Name' is no name for a node", "letters, digits, dots and dashes"],
        ),
        (["--runtime", "docker"], ["'docker' is no runtime: there are process, containerd, sim"]),
        (["--node-ip", "here"], ["'here' is no IP address: write it as 192.0.2.1"]),
        (["--labels", "disk"], ["--labels 'disk' is no label: write KEY=VALUE"]),
        (["--register-with-taints", "a=b:Never"], ["is no taint: write KEY=VALUE:EFFECT", "NoExecute"]),
        (["--max-pods", "none"], ["'none' is not a whole number"]),
        (["--listen", "here"], ["--listen 'here' is no address"]),
        (["--data", ""], ["--data is empty: give it a value"]),
    ],
)
async def test_a_wrong_option_is_one_line(flags: list[str], words: list[str]) -> None:
    result = await podlife("node", *flags)
    assert (result.code, result.out) == (2, ""), result
    assert len(result.err.splitlines()) == 1, result.err
    for word in words:
        assert word in result.err


async def test_a_kubeconfig_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    result = await podlife("node", "--name", "n1", "--data", str(tmp_path), "--kubeconfig", str(missing))
    assert result.code == 1
    assert len(result.err.splitlines()) == 1, result.err
    assert str(missing) in result.err


async def test_a_data_folder_that_cannot_be_one_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    result = await podlife(
        "node",
        "--name",
        "n1",
        "--data",
        str(file / "data"),
        "--server",
        "https://127.0.0.1:1",
        "--token",
        "t",
    )
    assert result.code == 1
    assert len(result.err.splitlines()) == 1, result.err
    assert "cannot be used: Not a directory; name another with --data" in result.err
