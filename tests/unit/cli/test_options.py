"""The values that Kubernetes' users type, and groups of options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from podlife.cli.connection import ConnectionOptions, load_connection
from podlife.cli.options import GoCommand, _parse_verbosity, parse_duration, parse_timeout, with_groups
from podlife.client import TokenAuth
from podlife.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("40s", 40),
        ("1m30s", 90),
        ("500ms", 0.5),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("0", 0),
        ("0s", 0),
        ("-1s", -1),
        ("+2m", 120),
        ("1h2m3s4ms", 3723.004),
        ("250us", 0.00025),
    ],
)
def test_a_duration_is_read_as_go_reads_it(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(("text", "hours"), [("1d", "24h"), ("2w", "336h")])
def test_days_and_weeks_are_told_in_hours(text: str, hours: str) -> None:
    with pytest.raises(typer.BadParameter, match=f"expected {hours}"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["", "40", "s", "4 s", "40S", "1m-3s", "1e3s", "nan", "٣s"])
def test_what_is_no_duration_is_told_how_to_write_one(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="expected 40s"):
        parse_duration(text)


def test_a_default_is_in_seconds_already() -> None:
    assert parse_duration(40.0) == 40.0


@pytest.mark.parametrize(("text", "seconds"), [("5", 5), ("1.5", 1.5), ("5s", 5), ("0", 0)])
def test_a_timeout_may_be_a_bare_number_of_seconds(text: str, seconds: float) -> None:
    assert parse_timeout(text) == seconds


def test_a_timeout_in_the_past_is_refused() -> None:
    with pytest.raises(typer.BadParameter, match="must not be negative"):
        parse_timeout("-1s")


@dataclass(frozen=True)
class Size:
    width: int = 3
    height: Annotated[int, typer.Option("-H", "--height")] = 4


def test_a_group_of_options_arrives_as_one_value() -> None:
    app = typer.Typer()

    @app.command()
    @with_groups
    def area(size: Size, factor: int = 1) -> None:
        typer.echo(size.width * size.height * factor)

    assert CliRunner().invoke(app, []).stdout == "12\n"
    assert CliRunner().invoke(app, ["-H", "5", "--width", "2", "--factor", "10"]).stdout == "100\n"
    assert CliRunner().invoke(app, ["--size", "2"]).exit_code == 2


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ([], (True, False)),
        (["--elect"], (True, False)),
        (["--no-elect"], (False, False)),
        (["--elect=false"], (False, False)),
        (["--elect=FALSE"], (False, False)),
        (["--elect=0"], (False, False)),
        (["--elect=true"], (True, False)),
        (["--elect=t", "--dry-run=true"], (True, True)),
        (["--dry-run=false"], (True, False)),
        (["--name", "--elect=false"], (True, False)),
    ],
)
def test_a_switch_takes_a_value_as_those_of_kubernetes_do(given: list[str], meant: tuple[bool, bool]) -> None:
    seen: list[tuple[bool, bool]] = []
    result = CliRunner().invoke(_switches(seen), given)
    assert (result.exit_code, seen) == (0, [meant]), result.output


def _switches(seen: list[tuple[bool, bool]]) -> typer.Typer:
    app = typer.Typer(rich_markup_mode=None)

    @app.command(cls=GoCommand)
    def run(
        elect: bool = True, dry_run: Annotated[bool, typer.Option("--dry-run")] = False, name: str = ""
    ) -> None:
        seen.append((elect, dry_run))

    return app


@pytest.mark.parametrize(("text", "level"), [("4", 4), ("=4", 4), ("0", 0)])
def test_a_level_is_typed_as_for_kubectl(text: str, level: int) -> None:
    assert _parse_verbosity(text) == level


def test_flags_make_a_connection_without_any_file() -> None:
    options = ConnectionOptions(server="https://host:1", token="secret", request_as="eve")
    connection = load_connection(options)
    assert (connection.server, connection.auth) == ("https://host:1", TokenAuth("secret"))
    assert connection.impersonation == (("Impersonate-User", "eve"),)


def test_a_context_without_a_file_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="no context 'dev'"):
        load_connection(ConnectionOptions(context="dev"))
