"""The flags of `podlife gc`: what they mean to the collector, and what is said about those that mean nothing."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from podlife.cli.app import app
from podlife.cli.commands.gc.options import GATES, REASONS, GuardOptions, PolicyOptions, SelectionOptions
from podlife.cli.options import ElectionOptions, parse_address
from podlife.daemons.service import ElectionSettings
from podlife.podgc import FeatureGates, Reason, Selection, Settings
from podlife.podgc.policy.model import Guards, Policy
from tests.unit.cli.conftest import Refused

ONE = "example.com/one"
REMOVE = ("finalizers", "remove")


def test_the_defaults_are_the_collectors_own() -> None:
    assert PolicyOptions().settings() == Settings()


def test_the_names_are_those_that_the_collector_has() -> None:
    assert set(REASONS) == set(Reason)
    assert set(GATES.values()) == {field.name for field in dataclasses.fields(FeatureGates)}


@pytest.mark.parametrize(
    "given", [["orphaned,terminated"], ["orphaned", "terminated"], [" terminated ,orphaned,"]]
)
def test_reasons_are_chosen_with_commas_or_one_by_one(given: list[str]) -> None:
    assert PolicyOptions(collect=given).settings().collect == {Reason.ORPHANED, Reason.TERMINATED}


def test_a_gate_is_switched_by_its_upstream_name() -> None:
    given = ["PodDisruptionConditions=false,JobPodReplacementPolicy=True", "NodeOutOfServiceVolumeDetach=0"]
    gates = PolicyOptions(feature_gates=given).settings().gates
    assert gates == FeatureGates(
        pod_disruption_conditions=False,
        job_pod_replacement_policy=True,
        node_out_of_service_volume_detach=False,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan", "--collect", "old"], "unknown --collect value 'old'; choose from terminated"),
        (["plan", "--feature-gates", "Magic=true"], "unknown feature gate 'Magic'"),
        (["plan", "--feature-gates", "PodDisruptionConditions"], "PodDisruptionConditions=true or"),
        (["plan", "--feature-gates", "PodDisruptionConditions=maybe"], "PodDisruptionConditions=true or"),
        (["plan", "-n", "a", "-A"], "exclude each other"),
        (["plan", "-n", "Not_A_Name"], "invalid namespace name"),
        (["plan", "-l", "a=(b"], "invalid label selector"),
        (["plan", "--collect", ","], "--collect is empty; choose from terminated"),
        (["plan", "--quarantine", "-5s"], "duration must not be negative: '-5s'"),
        (["plan", "--quarantine", "9999999999h"], "duration exceeds the maximum (2562047h)"),
        (["plan", "--quarantine", "40"], "invalid duration"),
        (["plan", "--period", "20s"], "unknown flag"),
        (["sweep", "--request-timeout", "-1s"], "must not be negative"),
        (["run", "--period", "0s"], "--period must be longer than 0"),
        (["run", "--listen", "8080"], "expected HOST:PORT"),
        (["run", "--ui-url", "javascript:x"], "invalid --ui-url"),
        (["run", "--ui-url", "http://127.0.0.1:8480/?token=x"], "must not have a token"),
        (["run", "--listen", "127.0.0.1:99999"], "expected HOST:PORT"),
        (["run", "--listen", "127.0.0.1:x"], "expected HOST:PORT"),
        (
            ["run", "--leader-elect-lease-duration", "10s"],
            "must be longer than --leader-elect-renew-deadline",
        ),
        (["run", "--leader-elect-renew-deadline", "2s"], "1.2 times --leader-elect-retry-period"),
        (["run", "--leader-elect-retry-period", "0"], "longer than 0"),
        (["run", "-n", "a"], "unknown flag"),
        (["nonsense"], "unknown command"),
        ([*REMOVE, "p"], "--allow is required"),
        ([*REMOVE, "p", "--allow", "example.com/*"], "patterns are not supported"),
        ([*REMOVE, "p", "--allow", "not a name"], "invalid finalizer name"),
        ([*REMOVE, "P", "--allow", ONE], "invalid pod name"),
        ([*REMOVE, "p", "--allow", ONE, "--quarantine", "-1s"], "duration must not be negative"),
        (["finalizers", "-o", "yaml"], "unknown output format"),
        (["finalizers", "-n", "a", "-A"], "exclude each other"),
        (["finalizers", "-n", "a", *REMOVE[1:], "p", "--allow", ONE], "flags of remove must follow it"),
        (["sweep", "--yes", "--remove-finalizer", "a/b/c"], "invalid finalizer name"),
        (["run", "--remove-finalizer", "example.com/?"], "patterns are not supported"),
        (
            ["sweep", "--max-per-minute", "0"],
            "--max-per-minute: invalid value '0': expected a whole number of 1 or more",
        ),
        (["sweep", "--max-per-minute", "-1"], "--max-per-minute: invalid value '-1'"),
        (["sweep", "--max-per-minute", "many"], "--max-per-minute: invalid value 'many'"),
    ],
)
def test_nonsense_is_a_wrong_use_that_says_what_would_be_right(
    refused: Refused, arguments: list[str], message: str
) -> None:
    assert message in refused("gc", *arguments)


def test_a_selection_is_what_was_typed() -> None:
    assert SelectionOptions("ns", selector="a=b,c").selection() == Selection("ns", "a=b,c")
    assert SelectionOptions(all_namespaces=True).selection() == Selection()


def test_an_election_that_holds_is_taken_as_it_is() -> None:
    assert ElectionOptions().settings() == ElectionSettings("podlife-gc")
    assert ElectionOptions(leader_elect=False).settings() is None


@pytest.mark.parametrize(
    ("text", "address"), [("127.0.0.1:80", ("127.0.0.1", 80)), (":0", ("", 0)), ("[::1]:8080", ("::1", 8080))]
)
def test_an_address_has_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


def test_an_address_without_a_port_is_refused() -> None:
    with pytest.raises(typer.BadParameter, match="HOST:PORT"):
        parse_address("localhost")


@pytest.mark.parametrize(
    "command", [["gc", "sweep"], ["gc", "finalizers", "remove", "p"], ["controllers", "run"], ["up"]]
)
@pytest.mark.parametrize("name", ["--pod-gc-quarantine", "--quarantine"])
def test_the_quarantine_has_one_name_everywhere_and_a_short_one(command: list[str], name: str) -> None:
    result = CliRunner().invoke(app, [*command, name, "-1s"])
    assert result.exit_code == 2
    assert "duration must not be negative" in result.output


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
    loose = replace(GuardOptions(max_per_minute=1000).on(Settings()), policy=policy)
    assert loose.guards == policy.guards
