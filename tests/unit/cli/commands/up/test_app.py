"""The options of `podlife up`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Refused


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--runtime", "docker"), "'docker' is no runtime: there are process, containerd, sim"),
        (("--nodes", "-1"), "'-1' is not a whole number from 0 to 1000"),
        (("--controllers", "nobody"), "--controllers knows no 'nobody'"),
        (
            ("--runtime", "containerd", "--containerd-socket", "/nowhere"),
            "containerd does not listen on /nowhere",
        ),
        (("--scenario", "x.yaml"), "--scenario is for simulated nodes"),
        (("--data", ""), "--data is empty"),
        (("--name", "no host"), "'no host' is no host name and no IP address"),
        (("--stop-timeout", "-1s"), "lies in the past"),
    ],
)
def test_a_wrong_option_is_one_line_and_nothing_is_made(
    refused: Refused, flags: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    data = () if "--data" in flags else ("--data", str(tmp_path / "data"))
    assert told in refused("up", *data, *flags)
    assert not (tmp_path / "data").exists()


def test_an_audit_log_is_turned_off_by_a_word_and_not_by_an_empty_one() -> None:
    from typer.main import get_command

    from podlife.cli.app import app

    command = get_command(app).commands["up"]  # type: ignore[attr-defined] # it is a group
    for words, path in ((["none"], ""), (["/x/log"], "/x/log"), ([], None)):
        flags = ["--audit-log-path", *words] if words else []
        assert command.make_context("up", flags).params["audit_log_path"] == path
