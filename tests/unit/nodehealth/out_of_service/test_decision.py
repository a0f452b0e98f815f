"""Who is set out of service and why not, as a pure function; and what holds whatever the facts are."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podlife.nodehealth.node_health import ClockReading
from podlife.nodehealth.out_of_service.decision import (
    NodeContents,
    NodeDecision,
    OutOfServiceAction,
    OutOfServiceFacts,
    RefusalReason,
    decide,
)
from podlife.nodehealth.out_of_service.fence_checks import FenceAnswer, FenceResult, FenceVerdict
from podlife.nodehealth.out_of_service.record import RecordState, TaintOwner, TaintRecord
from podlife.nodehealth.out_of_service.settings import OutOfServiceSettings, Portion

WALL = datetime(2030, 1, 1, 12, tzinfo=UTC)
NOW = ClockReading(WALL, 10_000.0)
SETTINGS = OutOfServiceSettings()
READY = OutOfServiceFacts("ready", "u-ready", is_ready=True)


def verdict(*results: FenceResult, seconds_ago: float = 0.0) -> FenceVerdict:
    answers = tuple(FenceAnswer(f"check {number}", result, "why") for number, result in enumerate(results))
    return FenceVerdict(answers, NOW.loop - seconds_ago, NOW.loop - seconds_ago)


DEAD = verdict(FenceResult.DEAD)


def away(name: str = "n1", **changed: Any) -> OutOfServiceFacts:
    """A node that has been away for long, and was confirmed dead a moment ago."""
    facts = OutOfServiceFacts(
        name,
        f"u-{name}",
        is_ready=False,
        not_ready_seconds=300,
        silent_seconds=340,
        held=NodeContents(pods=1),
        verdict=DEAD,
    )
    return replace(facts, **changed)


def record(state: RecordState, seconds_ago: float = 0.0) -> TaintRecord:
    return TaintRecord(state, WALL - timedelta(seconds=seconds_ago), "u-n1")


def among(
    *nodes: OutOfServiceFacts, ready: int = 9, settings: OutOfServiceSettings = SETTINGS
) -> NodeDecision:
    """What is decided of the first, among so many that are ready."""
    others = [replace(READY, name=f"r{number}", uid=f"u-r{number}") for number in range(ready)]
    return decide([*nodes, *others], settings, NOW)[nodes[0].name]


def test_a_node_that_is_confirmed_dead_is_tainted() -> None:
    assert among(away()) == NodeDecision(OutOfServiceAction.SET, None, "confirmed dead by check 0")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"silent_seconds": 299.0}, RefusalReason.AGENT_SPEAKS),
        ({"silent_seconds": 340.0, "lease_seconds": 341.0}, RefusalReason.AGENT_SPEAKS),
        ({"is_control_plane": True}, RefusalReason.CONTROL_PLANE),
        ({"taint": TaintOwner.OTHER}, RefusalReason.TAINTED_ALREADY),
        ({"record": record(RecordState.TAINTED)}, RefusalReason.TAKEN_OFF),
        ({"record": record(RecordState.RETURNED, 599)}, RefusalReason.COOL_DOWN),
        ({"held": NodeContents()}, RefusalReason.NOTHING_TO_FREE),
        ({"verdict": verdict(FenceResult.NOT_DEAD)}, RefusalReason.NOT_CONFIRMED),
        ({"verdict": verdict(FenceResult.TIMEOUT)}, RefusalReason.NOT_CONFIRMED),
        ({"verdict": verdict(FenceResult.FAILED)}, RefusalReason.NOT_CONFIRMED),
        ({"verdict": verdict(FenceResult.DEAD, FenceResult.TIMEOUT)}, RefusalReason.NOT_CONFIRMED),
    ],
)
def test_what_keeps_a_dead_node_from_being_tainted_has_its_reason(
    changed: dict[str, Any], reason: RefusalReason
) -> None:
    decision = among(away(**changed))
    assert (decision.step, decision.reason) == (OutOfServiceAction.REFUSE, reason)
    assert decision.message


@pytest.mark.parametrize(
    ("changed", "step"),
    [
        ({"not_ready_seconds": 299.9}, OutOfServiceAction.NOTHING),
        ({"record": record(RecordState.FREED, 9999)}, OutOfServiceAction.NOTHING),
        ({"record": record(RecordState.RETURNED, 600)}, OutOfServiceAction.SET),
        ({"held": None}, OutOfServiceAction.LOOK),
        ({"held": NodeContents(attachments=1)}, OutOfServiceAction.SET),
        ({"verdict": None}, OutOfServiceAction.CHECK),
        ({"verdict": verdict(FenceResult.NOT_DEAD, seconds_ago=30)}, OutOfServiceAction.CHECK),
        ({"verdict": verdict(FenceResult.DEAD, seconds_ago=15)}, OutOfServiceAction.SET),
        ({"verdict": verdict(FenceResult.DEAD, seconds_ago=16)}, OutOfServiceAction.WAIT),
        ({"verdict": verdict(FenceResult.DEAD, seconds_ago=30)}, OutOfServiceAction.CHECK),
    ],
)
def test_what_comes_next_for_a_node_that_is_away(changed: dict[str, Any], step: OutOfServiceAction) -> None:
    assert among(away(**changed)).step is step


def test_a_confirmation_counts_only_if_the_agent_was_not_heard_since() -> None:
    """Where the time that a node has is shorter than the time that a confirmation counts."""
    settings = replace(SETTINGS, after_seconds=3.0, fence_every_seconds=10.0)
    assert (
        among(
            away(silent_seconds=4.0, verdict=verdict(FenceResult.DEAD, seconds_ago=4)), settings=settings
        ).step
        is OutOfServiceAction.SET
    )
    assert (
        among(
            away(silent_seconds=4.0, verdict=verdict(FenceResult.DEAD, seconds_ago=5)), settings=settings
        ).step
        is OutOfServiceAction.WAIT
    )
    assert (
        among(
            away(silent_seconds=4.0, verdict=verdict(FenceResult.DEAD, seconds_ago=10)), settings=settings
        ).step
        is OutOfServiceAction.CHECK
    )


def test_a_clock_that_is_ahead_prolongs_no_cool_down_beyond_its_length() -> None:
    decision = among(away(record=record(RecordState.RETURNED, -7 * 86_400)))
    assert decision.reason is RefusalReason.COOL_DOWN
    assert "left alone for 600 s" in decision.message


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (READY, (OutOfServiceAction.NOTHING, None)),
        (
            replace(READY, taint=TaintOwner.OURS, record=record(RecordState.TAINTED)),
            (OutOfServiceAction.REMOVE, RefusalReason.READY),
        ),
        (replace(READY, taint=TaintOwner.OTHER), (OutOfServiceAction.NOTHING, None)),
        (replace(READY, record=record(RecordState.TAINTED)), (OutOfServiceAction.NOTE, None)),
        (replace(READY, record=record(RecordState.FREED)), (OutOfServiceAction.NOTE, None)),
        (replace(READY, record=record(RecordState.RETURNED, 599)), (OutOfServiceAction.NOTHING, None)),
        (replace(READY, record=record(RecordState.RETURNED, 600)), (OutOfServiceAction.FORGET, None)),
        (away(taint=TaintOwner.OURS, held=None), (OutOfServiceAction.LOOK, None)),
        (away(taint=TaintOwner.OURS, held=NodeContents(pods=1)), (OutOfServiceAction.NOTHING, None)),
        (away(taint=TaintOwner.OURS, held=NodeContents(attachments=1)), (OutOfServiceAction.NOTHING, None)),
        (away(taint=TaintOwner.OURS, held=NodeContents()), (OutOfServiceAction.REMOVE, RefusalReason.FREED)),
    ],
)
def test_what_becomes_of_a_taint_and_of_what_was_written_down(
    facts: OutOfServiceFacts, expected: tuple[OutOfServiceAction, RefusalReason | None]
) -> None:
    decision = among(facts)
    assert (decision.step, decision.reason) == expected


def test_as_many_checks_as_are_required_have_to_confirm_it() -> None:
    said = verdict(FenceResult.DEAD, FenceResult.DEAD, FenceResult.FAILED)
    assert among(away(verdict=said)).reason is RefusalReason.NOT_CONFIRMED
    assert (
        among(away(verdict=said), settings=replace(SETTINGS, require=3)).reason is RefusalReason.NOT_CONFIRMED
    )
    assert among(away(verdict=said), settings=replace(SETTINGS, require=2)).step is OutOfServiceAction.SET


def test_the_control_plane_is_included_when_asked_for() -> None:
    settings = replace(SETTINGS, with_control_plane=True)
    assert among(away(is_control_plane=True), settings=settings).step is OutOfServiceAction.SET


# Guards


def test_of_more_dead_nodes_than_may_be_out_at_once_nobody_is_tainted() -> None:
    decided = decide([away("n1"), away("n2"), *[READY] * 18], SETTINGS, NOW)
    assert {decided["n1"].step, decided["n2"].step} == {OutOfServiceAction.SET}, (
        "two of twenty are ten percent"
    )
    decided = decide([away("n1"), away("n2"), *[READY] * 17], SETTINGS, NOW)
    assert {decided[name].reason for name in ("n1", "n2")} == {RefusalReason.TOO_MANY}


@pytest.mark.parametrize("taint", [TaintOwner.OURS, TaintOwner.OTHER])
def test_who_is_out_already_counts_whoever_set_the_taint(taint: TaintOwner) -> None:
    assert among(away(), away("n2", taint=taint)).reason is RefusalReason.TOO_MANY


def test_who_was_freed_counts_until_it_is_ready_again() -> None:
    """Or a pod that kills its node, and moves on, would be given one node after the other."""
    freed = record(RecordState.FREED, 86_400)
    assert among(away(), away("n2", record=freed, held=None, verdict=None)).reason is RefusalReason.TOO_MANY
    assert among(away(), replace(READY, name="n2", record=freed)).step is OutOfServiceAction.SET


def test_a_node_whose_contents_cannot_be_read_counts_as_the_others_do() -> None:
    """A server that answers for one of many dead nodes does not make a single one of them."""
    assert among(away(), away("n2", held=None)).reason is RefusalReason.TOO_MANY
    assert among(away(), away("n2", held=None, verdict=None)).reason is RefusalReason.TOO_MANY
    assert (
        among(away(), away("n2", held=None, verdict=verdict(FenceResult.NOT_DEAD))).step
        is OutOfServiceAction.SET
    )


def test_a_node_that_was_not_asked_about_yet_counts_and_one_that_lives_does_not() -> None:
    assert among(away(), away("n2", verdict=None)).reason is RefusalReason.TOO_MANY
    assert among(away(), away("n2", verdict=verdict(FenceResult.NOT_DEAD))).step is OutOfServiceAction.SET


def test_a_node_that_waits_behind_others_is_still_asked_about() -> None:
    assert among(away(verdict=None), away("n2", verdict=None)).step is OutOfServiceAction.CHECK


def test_where_too_few_nodes_are_ready_nobody_is_tainted_nor_asked_about() -> None:
    assert among(away(), ready=1).step is OutOfServiceAction.SET
    others = (away("n2", verdict=None), away("n3", not_ready_seconds=0))
    assert among(away(verdict=None), *others, ready=2).reason is RefusalReason.TOO_FEW_HEALTHY
    by_number = replace(SETTINGS, min_healthy=Portion(number=3))
    assert among(away(), ready=2, settings=by_number).reason is RefusalReason.TOO_FEW_HEALTHY
    assert among(away(), ready=3, settings=by_number).step is OutOfServiceAction.SET


def test_where_too_few_nodes_are_ready_it_is_not_even_looked_at_what_is_on_the_others() -> None:
    assert among(away(held=None, verdict=None), ready=0).reason is RefusalReason.TOO_FEW_HEALTHY
    # But for those that are out already: their taint may have to come off.
    assert among(away(held=None, taint=TaintOwner.OURS), ready=0).step is OutOfServiceAction.LOOK


def test_a_cluster_of_one_node_is_left_alone() -> None:
    assert among(away(), ready=0).reason is RefusalReason.TOO_FEW_HEALTHY


@pytest.mark.parametrize(
    ("portion", "total", "most", "least"),
    [
        (Portion(percent=10), 9, 1, 1),
        (Portion(percent=10), 20, 2, 2),
        (Portion(percent=29), 100, 29, 29),
        (Portion(percent=50), 3, 1, 2),
        (Portion(percent=0.5), 100, 1, 1),
        (Portion(number=0), 5, 1, 0),
    ],
)
def test_a_share_is_rounded_to_the_safe_side(portion: Portion, total: int, most: int, least: int) -> None:
    assert (portion.at_most(total), portion.at_least(total)) == (most, least)


@pytest.mark.parametrize("seconds", [10.0, 60.0])
def test_what_is_on_a_node_is_still_known_when_the_slowest_check_has_answered(seconds: float) -> None:
    """Or nobody is ever tainted while there are always others to ask about."""
    chosen = replace(SETTINGS, fence_timeout_seconds=seconds)
    assert chosen.look_seconds > seconds + chosen.period_seconds


def test_two_refusals_are_the_same_when_only_their_numbers_differ() -> None:
    first, second = among(away(silent_seconds=5.0)), among(away(silent_seconds=9.0))
    assert first.message != second.message
    assert first.key == second.key
    slow, denied = (
        among(away(verdict=verdict(FenceResult.TIMEOUT))),
        among(away(verdict=verdict(FenceResult.NOT_DEAD))),
    )
    assert slow.key != denied.key


# What holds whatever the facts are

# Each a node that is to be tainted, but for one or two things: so that what is decided hangs on every one of them.
_CHANGES: dict[str, list[Any]] = {
    "not_ready_seconds": [0.0, 299.9, 1e6],
    "silent_seconds": [0.0, 10.0, 299.9, 1e6],
    "lease_seconds": [40.0, 600.0],
    "verdict": [
        None,
        verdict(FenceResult.FAILED),
        *(verdict(FenceResult.DEAD, result) for result in FenceResult),
        *(verdict(FenceResult.DEAD, seconds_ago=seconds) for seconds in (15.0, 20.0, 40.0)),
    ],
    "record": [record(state, seconds) for state in RecordState for seconds in (0.0, 700.0)],
    "held": [None, NodeContents(), NodeContents(attachments=2)],
    "taint": [TaintOwner.OURS, TaintOwner.OTHER],
    "is_control_plane": [True],
    "is_ready": [True],
}
_AWAY = st.lists(
    st.sampled_from([*_CHANGES]).flatmap(lambda key: st.tuples(st.just(key), st.sampled_from(_CHANGES[key]))),
    max_size=2,
).map(dict)
_NODES = st.builds(
    lambda changed, ready: [
        *(away(f"n{number}", **change) for number, change in enumerate(changed)),
        *(replace(READY, name=f"r{number}") for number in range(ready)),
    ],
    st.lists(_AWAY, max_size=4),
    st.integers(0, 8),
)
_PORTIONS = st.builds(Portion, percent=st.sampled_from([5.0, 20.0, 34.0, 50.0, 100.0])) | st.builds(
    Portion, number=st.integers(0, 4)
)
_SETTINGS = st.builds(
    OutOfServiceSettings,
    after_seconds=st.sampled_from([300.0, 300.0, 1.0]),
    most=_PORTIONS,
    min_healthy=_PORTIONS,
    require=st.sampled_from([None, None, 1, 2]),
    with_control_plane=st.booleans(),
)


@settings(max_examples=150)
@given(_NODES, _SETTINGS)
def test_whatever_the_facts_nobody_is_tainted_who_must_not_be(
    nodes: list[OutOfServiceFacts], chosen: OutOfServiceSettings
) -> None:
    decided = decide(nodes, chosen, NOW)
    assert decided.keys() == {node.name for node in nodes}
    tainted = [node for node in nodes if decided[node.name].step is OutOfServiceAction.SET]
    for node in tainted:
        assert not node.is_ready
        assert node.taint is TaintOwner.NONE
        assert min(node.not_ready_seconds, node.silent_seconds) >= chosen.after_seconds
        assert node.silent_seconds >= node.lease_seconds
        assert node.verdict is not None
        assert NOW.loop - node.verdict.came_at <= chosen.fresh_seconds
        assert NOW.loop - node.verdict.asked_at <= node.silent_seconds
        confirming = sum(answer.result is FenceResult.DEAD for answer in node.verdict.answers)
        assert confirming >= (chosen.require or len(node.verdict.answers)) >= 1
        assert chosen.with_control_plane or not node.is_control_plane
    if tainted:
        out = sum(node.taint is not TaintOwner.NONE for node in nodes)
        assert out + len(tainted) <= chosen.most.at_most(len(nodes)), "the share is never exceeded"
        assert sum(node.is_ready for node in nodes) >= chosen.min_healthy.at_least(len(nodes))


@settings(max_examples=150)
@given(_NODES, _SETTINGS)
def test_whatever_the_facts_only_a_taint_of_ours_comes_off_and_every_refusal_says_why(
    nodes: list[OutOfServiceFacts], chosen: OutOfServiceSettings
) -> None:
    decided = decide(nodes, chosen, NOW)
    for node in nodes:
        decision = decided[node.name]
        if decision.step is OutOfServiceAction.REMOVE:
            assert node.taint is TaintOwner.OURS
            assert node.is_ready or (node.held is not None and not node.held)
        if decision.step is OutOfServiceAction.REFUSE:
            assert decision.reason is not None
            assert decision.message
            assert not node.is_ready


@settings(max_examples=150)
@given(_NODES, _SETTINGS, st.data())
def test_one_more_node_that_is_dead_never_makes_another_be_tainted(
    nodes: list[OutOfServiceFacts], chosen: OutOfServiceSettings, data: st.DataObject
) -> None:
    """But for the total, of which the share is: so one that was well dies."""
    well = [node for node in nodes if node.is_ready]
    if not well:
        return
    dying = data.draw(st.sampled_from(well))
    after = [away(node.name) if node is dying else node for node in nodes]
    before, then = decide(nodes, chosen, NOW), decide(after, chosen, NOW)
    for node in nodes:
        if node is not dying and then[node.name].step is OutOfServiceAction.SET:
            assert before[node.name].step is OutOfServiceAction.SET
