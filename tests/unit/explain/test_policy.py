"""What is told of a pod and a policy, from how the pod stands with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from podlife.explain import (
    ActionRules,
    ClusterSnapshot,
    CollectorRule,
    Explanation,
    PolicyHold,
    PolicyStatus,
    explain_pod,
)

Object = dict[str, Any]
NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
FIVE = NOW + timedelta(minutes=5)


def ended(**metadata: Any) -> Object:
    found = {"name": "web", "namespace": "shop", "uid": "u", **metadata}
    return {"metadata": found, "spec": {"nodeName": "n1"}, "status": {"phase": "Succeeded"}}


def explained(standing: PolicyStatus | None, pod: Object | None = None) -> Explanation:
    node = {"metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    world = ClusterSnapshot(NOW, ActionRules(standing=lambda pod: standing), nodes={"n1": node}, leases={})
    return explain_pod(world, pod or ended())


def told(found: Explanation) -> list[tuple[str, datetime | None]]:
    return [(each.what, each.at) for each in found.upcoming if each.who == "podlife gc"]


def test_the_rule_that_acts_is_named_with_its_moment() -> None:
    due = PolicyStatus("jobs", reason="expired", why="ended at noon, may stay 5m", due_at=FIVE)
    [(what, at)] = told(explained(due))
    assert (what, at) == ("deletes it by rule jobs (expired: ended at noon, may stay 5m)", FIVE)
    waiting = PolicyStatus("jobs", reason="expired", why="x", due_at=FIVE, waits_for_owner=True)
    assert told(explained(waiting))[0][0].endswith(", unless its owner has not seen the end by then")
    # What has been due since ever is due now.
    always = PolicyStatus("jobs", reason="surplus", why="x", due_at=datetime.min.replace(tzinfo=UTC))
    assert told(explained(always))[0][1] == NOW


def test_a_pod_that_its_rule_keeps_is_told_so_and_the_threshold_is_not_spoken_of() -> None:
    found = explained(PolicyStatus("jobs"))
    assert [each.what for each in found.upcoming] == [
        "has it under rule jobs, which lets it go at no time as things are"
    ]
    assert found.causes == ()


def test_without_a_rule_nothing_is_said_of_a_threshold_that_nobody_knows() -> None:
    for standing in (None, PolicyStatus()):
        assert explained(standing).upcoming == ()


@pytest.mark.parametrize(
    ("by", "metadata", "command"),
    [
        ("labels tier in (gold)", {"labels": {"tier": "gold"}}, "kubectl label pod web -n shop tier-"),
        (
            "labels a=1,b=2",
            {"labels": {"a": "1", "b": "2"}},
            "kubectl label pod web -n shop a-",
        ),
        ("annotation example.com/hold=yes", {}, "kubectl annotate pod web -n shop example.com/hold-"),
        (
            "annotation podlife.dev/keep-until, until 2031-01-01T00:00:00Z",
            {"annotations": {"podlife.dev/keep-until": "2031-01-01T00:00:00Z"}},
            "kubectl annotate pod web -n shop podlife.dev/keep-until-",
        ),
    ],
)
def test_what_is_the_pods_own_protection_is_taken_off_it(by: str, metadata: Object, command: str) -> None:
    found = explained(PolicyStatus("jobs", protected_by=by), ended(**metadata))
    [cause] = found.causes
    assert (cause.name, cause.is_stuck, cause.remedies[0].command) == ("protected", False, command)


@pytest.mark.parametrize("by", ["namespace prod-*", "labels tier notin (silver)", "labels !debug"])
def test_what_no_command_takes_off_the_pod_leaves_only_its_deletion_by_hand(by: str) -> None:
    [cause] = explained(PolicyStatus(protected_by=by), ended(labels={"tier": "gold"})).causes
    assert "kubectl delete --raw" in cause.remedies[0].command
    assert '"uid":"u"' in cause.remedies[0].command


def test_a_guard_is_lifted_by_its_own_command_and_is_stuck_only_if_it_needs_a_person() -> None:
    command = "kubectl annotate namespace shop podlife.dev/gc-stop-"
    stop = PolicyHold("stopped", lifted_by=command, is_for_a_person=True)
    [cause] = explained(PolicyStatus("jobs", reason="expired", why="x", due_at=NOW, guard=stop)).causes
    assert (cause.name, cause.is_stuck, cause.remedies[0].command) == ("held-by-guard", True, command)
    window = PolicyHold("outside the windows", FIVE)
    found = explained(PolicyStatus("jobs", reason="expired", why="x", due_at=NOW, guard=window))
    [cause] = found.causes
    assert (cause.is_stuck, [each.at for each in cause.upcoming]) == (False, [FIVE])
    assert "kubectl delete --raw" in cause.remedies[0].command
    assert "unless it is still held back then: outside the windows" in told(found)[0][0]


def test_the_wait_for_an_owner_ends_by_itself_or_by_a_note_on_this_very_pod() -> None:
    owner = PolicyHold("Job sum has not counted it yet", FIVE)
    found = explained(PolicyStatus("jobs", reason="expired", why="x", due_at=NOW, owner=owner))
    [cause] = found.causes
    assert (cause.name, cause.is_stuck) == ("waits-for-owner", False)
    assert "waits for its owner: Job sum has not counted it yet" in cause.text
    assert '"uid":"u"' in cause.remedies[0].command
    assert "podlife.dev/owner-has-seen" in cause.remedies[0].command
    assert [each.at for each in cause.upcoming] == [FIVE]
    assert told(found) == [
        ("deletes it by rule jobs (expired: x), sooner if its owner has seen the end", FIVE)
    ]


def test_a_running_pod_is_not_held_up_by_a_policy_that_would_spare_it() -> None:
    pod = ended()
    pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    found = explained(PolicyStatus(protected_by="namespace shop"), pod)
    assert found.causes == ()
    assert told(found) == [("leaves it alone: protected by namespace shop", None)]


def test_an_excluded_pod_is_left_alone_and_told_by_which_exclude() -> None:
    found = explained(PolicyStatus("jobs", excluded_by="exclude 1 of rule jobs"))
    [cause] = found.causes
    assert (cause.name, cause.is_stuck) == ("excluded", False)
    assert told(found) == [("leaves it alone: exclude 1 of rule jobs", None)]


@pytest.mark.parametrize(
    ("standing", "causes"),
    [
        (None, ["left-behind"]),
        (PolicyStatus("jobs", reason="expired", why="x", due_at=FIVE), ["left-behind"]),
        (PolicyStatus(protected_by="namespace shop"), ["protected"]),
        (PolicyStatus("jobs", excluded_by="exclude 1 of rule jobs"), ["excluded"]),
        (
            PolicyStatus("jobs", reason="expired", why="x", due_at=NOW, guard=PolicyHold("too many")),
            ["held-by-guard"],
        ),
        (
            PolicyStatus(
                "jobs", reason="expired", why="x", due_at=NOW, owner=PolicyHold("Job sum", until=FIVE)
            ),
            ["waits-for-owner"],
        ),
    ],
)
def test_a_pod_that_the_policy_keeps_was_not_left_behind(
    standing: PolicyStatus | None, causes: list[str]
) -> None:
    """Whoever follows the command that clears such pods away must not clear away what is protected."""
    pod = ended()
    pod["status"] = {"phase": "Failed", "reason": "Evicted"}
    assert [each.name for each in explained(standing, pod).causes] == causes


@pytest.mark.parametrize(
    "standing", [PolicyStatus("jobs"), PolicyStatus("jobs", excluded_by="exclude 1 of rule jobs")]
)
def test_a_pod_that_goes_by_upstreams_reason_is_not_called_left_alone(standing: PolicyStatus) -> None:
    """A rule keeps nobody whose node is gone, and neither does an exclude."""
    orphaned = CollectorRule("orphaned", "node n1 is missing", 60.0)
    rules = ActionRules(collect=lambda pod, node: orphaned, standing=lambda pod: standing)
    found = explain_pod(ClusterSnapshot(NOW, rules, nodes={}, leases={}), ended())
    assert told(found) == []
    assert [each.what for each in found.upcoming] == ["deletes it (orphaned): node n1 is missing"]
    assert [each.name for each in found.causes if each.name == "excluded"] == []


@pytest.mark.parametrize(
    "standing",
    [
        PolicyStatus(
            "jobs", reason="stuck-terminating", why="x", due_at=NOW, guard=PolicyHold("no window is open")
        ),
        PolicyStatus(protected_by="namespace shop"),
        PolicyStatus("jobs", excluded_by="exclude 1 of rule jobs"),
    ],
)
def test_a_pod_that_was_deleted_already_is_deleted_by_hand_without_a_grace(standing: PolicyStatus) -> None:
    """Asked once more to end with its grace, it would stay as it is."""
    pod = ended(deletionTimestamp="2030-01-01T11:00:00Z", deletionGracePeriodSeconds=30)
    pod["status"] = {"phase": "Running"}
    [cause] = [
        each
        for each in explained(standing, pod).causes
        if each.name in ("held-by-guard", "protected", "excluded")
    ]
    assert '"gracePeriodSeconds":0' in cause.remedies[-1].command
    assert "two may run at once" in cause.remedies[-1].risk
    [cause] = explained(standing, ended()).causes
    assert "gracePeriodSeconds" not in cause.remedies[-1].command
