"""Guards given on the command line."""

from __future__ import annotations

from dataclasses import replace

from typer.testing import CliRunner

from podlife.cli.commands.gc.app import app
from podlife.cli.commands.gc.guard_options import GuardOptions
from podlife.podgc import Settings
from podlife.podgc.policy.model import Guards, Policy


def test_with_nothing_said_there_are_no_guards_and_settings_are_as_they_were() -> None:
    assert GuardOptions().on(Settings()) == Settings()


def test_flags_are_guards_without_a_policy() -> None:
    settings = GuardOptions(max_per_minute=7).on(Settings())
    assert settings.guards == Guards(per_minute=7)
    assert GuardOptions(observe=True).on(Settings()).guards == Guards(is_observing=True)
    assert GuardOptions(force=True).on(Settings()) == Settings(is_forced=True)


def test_flags_hold_besides_what_the_policy_says() -> None:
    policy = Policy(guards=Guards(per_minute=100, share_of_cluster=0.1))
    settings = replace(GuardOptions(max_per_minute=7, observe=True).on(Settings()), policy=policy)
    assert settings.guards == Guards(per_minute=7, share_of_cluster=0.1, is_observing=True)
    assert replace(GuardOptions().on(Settings()), policy=policy).guards == policy.guards


def test_a_minute_without_deletions_is_refused() -> None:
    for text in ("0", "-1", "many"):
        result = CliRunner().invoke(app, ["sweep", "--max-per-minute", text])
        assert result.exit_code == 2
        assert "--max-per-minute" in result.stderr
