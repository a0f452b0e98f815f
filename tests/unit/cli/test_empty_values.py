"""An empty word, which is what a script passes whose variable is not set, never means something else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from click.testing import CliRunner

from podlife.cli.app import app
from podlife.daemons.kubeconfigs import make_kubeconfig
from podlife.errors import ConfigError


def options_of(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    for parameter in command.params:
        if parameter.param_type_name == "option" and not parameter.is_flag:
            yield from ((path, name) for name in parameter.opts)
    for name, each in getattr(command, "commands", {}).items():
        yield from options_of(each, (*path, name))


# Made once: typer builds all commands again for every call.
ROOT: Any = typer.main.get_command(app)
OPTIONS = list(options_of(ROOT))


def test_the_options_of_every_command_are_looked_at() -> None:
    assert {(("apiserver", "kubeconfig"), "--node"), (("up",), "--data"), (("stuck",), "--as")} <= set(
        OPTIONS
    )


@pytest.mark.parametrize("form", ["{0}|", "{0}| ", "{0}="])
def test_an_option_without_a_value_is_refused_and_named(form: str) -> None:
    for path, name in OPTIONS:
        if form == "{0}=" and not name.startswith("--"):
            continue
        result = CliRunner().invoke(ROOT, [*path, *form.format(name).split("|")])
        assert result.exit_code == 2, (path, name, result.output)
        assert f"{name} is empty: give it a value, or leave it out" in result.output, (path, name)


def test_an_empty_argument_is_refused() -> None:
    result = CliRunner().invoke(ROOT, ["down", ""])
    assert result.exit_code == 2
    assert "an argument is empty" in result.output


def test_a_value_that_ends_with_an_equals_sign_is_no_empty_one() -> None:
    result = CliRunner().invoke(ROOT, ["node", "--labels=a=", "--nonsense"])
    assert "is empty" not in result.output


@pytest.mark.parametrize("command", [["up"], ["controllers", "run"]])
def test_a_list_that_names_nothing_is_refused_and_not_taken_for_everything(command: list[str]) -> None:
    result = CliRunner().invoke(ROOT, [*command, "--controllers", " ,"])
    assert result.exit_code == 2, result.output


@pytest.mark.parametrize(
    "identity", [{"node": ""}, {"user": ""}, {"user": " "}, {"user": "a", "groups": ("",)}]
)
def test_an_empty_name_is_never_given_the_credentials_of_the_admin(
    tmp_path: Path, identity: dict[str, Any]
) -> None:
    (tmp_path / "admin.kubeconfig").write_text("the admin's")
    with pytest.raises(ConfigError):
        make_kubeconfig(tmp_path, **identity)
