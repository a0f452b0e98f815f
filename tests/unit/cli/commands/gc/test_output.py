"""The plan as text: for people, and for programs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from podlife.cli.commands.gc.output import Shown, format_plan
from podlife.podgc import Policy, Reason, Settings
from podlife.podgc.classifier import RuleVerdict
from podlife.podgc.plan import Action, Guard, HeldBack, Later, Plan, Refusal, Upcoming, Victim
from podlife.podgc.reasons import RuleReason
from podlife.podgc.views import Pod, PodMetadata, PodSpec, PodStatus

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def pod(name: str, *, node: str = "", phase: str = "", finalizers: tuple[str, ...] = ()) -> Pod:
    metadata = PodMetadata(
        name=name,
        namespace="ns",
        uid=f"uid-{name}",
        creation_timestamp=NOW - timedelta(hours=5, minutes=3),
        deletion_timestamp=NOW - timedelta(seconds=90) if finalizers else None,
        finalizers=finalizers,
    )
    return Pod(metadata, PodSpec(node_name=node), PodStatus(phase=phase))


def victims(*names: str) -> tuple[Victim, ...]:
    return tuple(Victim(pod(name), Reason.TERMINATED, Action.DELETE, "too many") for name in names)


PLAN = Plan(
    victims=(
        Victim(pod("old", node="n1", phase="Failed"), Reason.TERMINATED, Action.DELETE, "2 too many"),
        Victim(pod("a-longer-name"), Reason.UNSCHEDULED, Action.MARK_AND_DELETE, "never scheduled"),
    ),
    later=(Later("n2", (pod("x", node="n2"),), Reason.ORPHANED, 39.6, "node n2 is missing"),),
    held=(pod("stuck", phase="Failed", finalizers=("example/hold",)),),
)


def test_a_table_shows_what_goes_why_and_what_comes_next() -> None:
    assert (
        format_plan(PLAN, "table", NOW)
        == """\
NAMESPACE   NAME            REASON        AGE    WHY
ns          old             terminated    5h3m   2 too many
ns          a-longer-name   unscheduled   5h3m   never scheduled

2 pods to collect now: 1 terminated, 1 unscheduled.

LATER    PODS   REASON     WHY
in 40s   1      orphaned   node n2 is missing

HELD       FOR     BY FINALIZER
ns/stuck   1m30s   example/hold

1 pod already deleted: the controller that set the finalizer must remove it.
"""
    )


def test_a_wide_table_also_shows_where_it_is_and_what_is_done_to_it() -> None:
    line = format_plan(PLAN, "wide", NOW).splitlines()[1]
    assert " ".join(line.split()) == "ns old terminated 5h3m Failed n1 delete uid-old 2 too many"


def test_a_wide_table_names_whom_a_guard_holds_back() -> None:
    held = HeldBack(Refusal(Guard.STOP, "stopped", "ns", lifted_by="kubectl x"), victims("a", "b"))
    plan = Plan(held_back=(held,))
    assert "ns/a" not in format_plan(plan, "table", NOW)
    assert [line for line in format_plan(plan, "wide", NOW).splitlines() if "ns/" in line] == [
        "    ns/a",
        "    ns/b",
    ]


def test_observed_pods_are_shown_as_what_would_go_and_nothing_is_said_to_go() -> None:
    held = HeldBack(Refusal(Guard.OBSERVING, "only looking"), victims("a", "b"))
    plan = Plan(held_back=(held,))
    shown = format_plan(plan, "wide", NOW)
    assert "ns          a      terminated" in shown
    assert "2 pods would be collected (observe-only): 2 terminated." in shown
    assert "to collect now" not in shown
    assert format_plan(plan, "name", NOW) == ""
    read = json.loads(format_plan(plan, "json", NOW))
    assert (read["victims"], read["heldBack"][0]["count"]) == ([], 2)
    assert read["heldBack"][0]["pods"][0]["reason"] == "terminated"


def test_terminated_pods_below_the_threshold_are_counted_and_the_flag_is_named() -> None:
    said = format_plan(Plan(terminated=9), "table", NOW)
    assert said == (
        "Nothing to collect now in any namespace. The cluster has 9 terminated pods, 12500 may stay: a lower "
        "--terminated-pod-gc-threshold collects more.\n"
    )
    policy = Shown(Settings(policy=Policy(threshold=500)))
    assert "a lower upstream.terminated.threshold in the policy" in format_plan(
        Plan(terminated=9), "table", NOW, policy
    )
    for threshold in (0, -1):
        said = format_plan(Plan(terminated=1), "table", NOW, Shown(Settings(threshold=threshold)))
        assert said == (
            "Nothing to collect now in any namespace. The cluster has 1 terminated pod, all of them may stay: "
            "a threshold of 0 collects none, --terminated-pod-gc-threshold must be 1 or more.\n"
        )
    policy = Shown(Settings(policy=Policy(threshold=0)))
    assert "upstream.terminated.threshold in the policy must be 1 or more" in format_plan(
        Plan(terminated=9), "table", NOW, policy
    )
    # Those beyond the threshold go, or something else holds them: that is told elsewhere.
    lower = format_plan(Plan(terminated=9), "table", NOW, Shown(Settings(threshold=5), "ns"))
    assert lower == "Nothing to collect now in namespace ns.\n"


def test_what_comes_later_by_rules_is_said_to_be_of_every_namespace_where_one_is_shown() -> None:
    soon = Upcoming(
        "jobs", RuleReason.EXPIRED, 7, 60.0, (RuleVerdict(pod("x"), "jobs", RuleReason.EXPIRED, 0.0, "why"),)
    )
    plan = Plan(upcoming=(soon,))
    assert "by rule jobs, first ns/x" in format_plan(plan, "table", NOW)
    assert "by rule jobs in every namespace, first ns/x" in format_plan(
        plan, "table", NOW, Shown(namespace="ns")
    )


def test_nothing_to_do_is_one_friendly_line() -> None:
    assert format_plan(Plan(), "table", NOW) == "Nothing to collect now in any namespace.\n"


def test_what_only_comes_later_is_shown_though_nothing_goes_now() -> None:
    shown = format_plan(Plan(later=PLAN.later), "table", NOW)
    assert shown.startswith("Nothing to collect now in any namespace.\n\nLATER")


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_programs_get_everything(output: str) -> None:
    text = format_plan(PLAN, output, NOW)
    read = json.loads(text) if output == "json" else yaml.safe_load(text)
    assert read["victims"][0] == {
        "namespace": "ns",
        "name": "old",
        "uid": "uid-old",
        "nodeName": "n1",
        "phase": "Failed",
        "creationTimestamp": "2030-01-01T06:57:00Z",
        "reason": "terminated",
        "action": "delete",
        "why": "2 too many",
    }
    assert read["later"][0]["inSeconds"] == 39.6
    assert [each["name"] for each in read["later"][0]["pods"]] == ["x"]
    assert read["held"][0]["finalizers"] == ["example/hold"]


def test_an_empty_plan_is_still_a_document() -> None:
    assert json.loads(format_plan(Plan(), "json", NOW)) == {"victims": [], "later": [], "held": []}


def test_names_are_what_kubectl_takes_in_one_namespace_and_unmistakable_in_several() -> None:
    assert format_plan(PLAN, "name", NOW, Shown(namespace="ns")) == "pod/old\npod/a-longer-name\n"
    assert format_plan(PLAN, "name", NOW) == "ns/pod/old\nns/pod/a-longer-name\n"
    assert format_plan(Plan(), "name", NOW) == ""
