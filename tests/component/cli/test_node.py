"""`podlife node` as a user types it: what it refuses, and in which words."""

from __future__ import annotations

from pathlib import Path

from tests.component.cli.commands import podlife


async def refused(*flags: str) -> str:
    result = await podlife("node", "--name", "n1", *flags)
    assert (result.code, len(result.err.splitlines())) == (1, 1), result.err
    return result.err


async def test_a_kubeconfig_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    assert missing in await refused("--data", str(tmp_path), "--kubeconfig", missing)


async def test_a_data_folder_that_cannot_be_one_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    said = await refused("--data", str(file / "data"), "--server", "https://127.0.0.1:1", "--token", "t")
    assert "cannot be used: Not a directory; name another with --data" in said
