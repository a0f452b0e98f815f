"""What a policy decides, one promise at a time, on objects as a server gives them."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from podlife.api.codec import Object, format_time
from podlife.api.selectors import parse_label_selector
from podlife.podgc import Action, PodIndex, Settings, Victim
from podlife.podgc.effective_settings import index_of, pod_view
from podlife.podgc.keep_until import KEEP_UNTIL
from podlife.podgc.planner import standing_of, victim_of, victims
from podlife.podgc.policy import Policy
from podlife.podgc.policy.engine import groups
from podlife.podgc.policy.model import Keep, KeepOrder, Per, Protection, Rule, Selector

NOW = datetime(2030, 1, 2, tzinfo=UTC)


def ago(seconds: float) -> str:
    return format_time(NOW - timedelta(seconds=seconds))


def pod(name: str, ended_ago: float = 3600, **how: Any) -> Object:
    metadata: Object = {
        "name": name,
        "namespace": how.pop("namespace", "default"),
        "uid": f"uid-{name}",
        "creationTimestamp": how.pop("created", ago(86_400)),
    }
    status: Object = {"phase": how.pop("phase", "Succeeded"), "reason": how.pop("reason", "")}
    if (kind := how.pop("owner", "")) != "":
        metadata["ownerReferences"] = [{"kind": kind, "uid": f"{kind}-1", "controller": True}]
    if "statuses" in how:
        status["containerStatuses"] = how.pop("statuses")
    elif status["phase"] in ("Succeeded", "Failed"):
        status["containerStatuses"] = [container(ago(ended_ago), how.pop("code", 0))]
    status["conditions"] = how.pop("conditions", [])
    spec = {"nodeName": how.pop("node", "node")}
    return {"metadata": {**metadata, **how}, "spec": spec, "status": status}


def container(finished: str | None, code: int = 0) -> Object:
    return {"state": {"terminated": {"exitCode": code, "finishedAt": finished}}}


def planned(policy: Policy | None, *pods: Object, threshold: int = 0, **world: Any) -> list[Victim]:
    settings = Settings(threshold=threshold, policy=policy)
    index = index_of(settings, pods, world.get("nodes"), world.get("namespaces"), NOW)
    return list(victims(index, settings))


def chosen(policy: Policy, *pods: Object, **how: Any) -> list[tuple[str, str, str]]:
    return [(each.pod.metadata.name, str(each.reason), each.rule) for each in planned(policy, *pods, **how)]


def names(policy: Policy, *pods: Object, **how: Any) -> list[str]:
    return [name for name, _, _ in chosen(policy, *pods, **how)]


def test_a_pod_has_the_first_rule_that_selects_it_and_no_other() -> None:
    policy = Policy(
        (
            Rule("long", Selector(labels=parse_label_selector("app=x")), ttl_seconds=1e6),
            Rule("short", ttl_seconds=60),
        )
    )
    assert chosen(policy, pod("a", labels={"app": "x"}), pod("b")) == [("b", "expired", "short")]


def test_a_rule_that_is_off_selects_nobody() -> None:
    policy = Policy((Rule("off", ttl_seconds=1e6, is_on=False), Rule("short", ttl_seconds=60)))
    assert chosen(policy, pod("a")) == [("a", "expired", "short")]


def test_what_a_rule_excludes_is_left_alone_by_later_rules_and_by_upstreams_threshold() -> None:
    exclude = (Selector(labels=parse_label_selector("debug")), Selector(namespaces=("keep-*",)))
    policy = Policy(
        (Rule("first", Selector(owner_kinds=("Job",)), exclude, ttl_seconds=60), Rule("all", ttl_seconds=1))
    )
    pods = (
        pod("debugged", owner="Job", labels={"debug": ""}),
        pod("elsewhere", owner="Job", namespace="keep-me"),
        pod("plain", owner="Job"),
        pod("nobodys"),
    )
    assert chosen(policy, *pods, threshold=1) == [
        ("nobodys", "expired", "all"),
        ("plain", "expired", "first"),
    ]


def test_each_rule_has_excludes_of_its_own() -> None:
    first = Rule("first", Selector(owner_kinds=("Job",)), (Selector(nodes=("m",)),), ttl_seconds=60)
    debug, held = (Selector(labels=parse_label_selector(each)) for each in ("debug", "held"))
    policy = Policy((first, Rule("second", exclude=(debug, held), ttl_seconds=60)))
    pods = (
        pod("a", owner="Job", labels={"debug": "", "held": ""}),
        pod("b", owner="Job", node="m"),
        pod("c", node="m"),
        pod("d", labels={"debug": ""}),
        pod("e", labels={"held": ""}),
    )
    assert names(policy, *pods) == ["a", "c"]
    assert asked(policy, pods[1]).excluded_by == "exclude 1 of rule first"
    assert asked(policy, pods[4]).excluded_by == "exclude 2 of rule second"


def test_upstreams_threshold_counts_only_ended_pods_that_no_rule_has_and_nothing_protects() -> None:
    policy = Policy(
        (Rule("jobs", Selector(owner_kinds=("Job",)), ttl_seconds=1e6),),
        Protection(labels=(parse_label_selector("hold"),)),
    )
    pods = [pod(name, owner="Job") for name in "ab"] + [pod(name, labels={"hold": ""}) for name in "cd"]
    assert chosen(policy, *pods, pod("e"), threshold=1) == []
    assert chosen(policy, *pods, pod("e"), pod("f"), threshold=1) == [
        ("e", "terminated", "upstream/terminated")
    ]


@pytest.mark.parametrize(
    ("ended", "is_either", "expected"),
    [
        ((100, 200, 5), False, ["b"]),
        ((100, 200, 50), True, ["b", "a"]),
        ((1, 2, 3), False, []),
        ((1, 2, 3), True, ["c"]),
    ],
)
def test_with_two_limits_a_pod_goes_beyond_both_or_where_it_is_said_beyond_one(
    ended: tuple[float, ...], is_either: bool, expected: list[str]
) -> None:
    rule = Rule("both", keep=Keep(2), ttl_seconds=60, is_either=is_either)
    assert names(Policy((rule,)), *(pod(name, at) for name, at in zip("abc", ended, strict=True))) == expected


@pytest.mark.parametrize(
    ("per", "expected"),
    [
        (Per.CLUSTER, ["a", "b", "c", "d"]),
        (Per.NAMESPACE, ["a", "b", "d"]),
        (Per.NODE, ["a", "b", "c"]),
        (Per.OWNER, ["a", "b"]),
    ],
)
def test_the_youngest_of_each_group_stay(per: Per, expected: list[str]) -> None:
    pods = (
        pod("a", 50, owner="Job", node="m"),
        pod("b", 40, owner="Job"),
        pod("c", 30, node="m"),
        pod("d", 20, namespace="other", owner="Job"),
        pod("e", 10, node="m", namespace="other"),
    )
    found = names(Policy((Rule("keep", keep=Keep(1, per)),)), *pods)
    # Nobody's pods count by their namespace.
    assert found == expected


def test_a_large_group_is_decided_about_like_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [pod(str(number), 100 - number) for number in range(8)]
    policy = Policy((Rule("keep", keep=Keep(3)),))
    expected = names(policy, *pods)
    monkeypatch.setattr(groups, "_LARGE", 2)
    assert names(policy, *pods[::-1]) == names(policy, *pods) == expected == list("01234")


def test_a_pod_that_is_being_deleted_takes_the_place_of_none_that_stays() -> None:
    """It ends as it goes, the last of all: for that moment it would count as the youngest."""
    leaving = pod("leaving", 1, deletionTimestamp=ago(2), deletionGracePeriodSeconds=30)
    both = Rule("both", keep=Keep(2), ttl_seconds=60)
    for rule in (Rule("keep", keep=Keep(2)), both):
        assert names(Policy((rule,)), pod("a"), pod("b"), leaving) == []
        assert names(Policy((rule,)), pod("a", 3602), pod("b"), pod("c"), leaving) == ["a"]


def test_a_pod_that_is_being_deleted_and_does_not_go_is_left_to_the_limits_of_time() -> None:
    stuck = pod("stuck", 90, deletionTimestamp=ago(120), deletionGracePeriodSeconds=30)
    others = (pod("a"), pod("b"))
    assert names(Policy((Rule("keep", keep=Keep(2)),)), stuck, *others) == []
    either = Rule("either", keep=Keep(2), ttl_seconds=60, is_either=True)
    assert chosen(Policy((either,)), stuck) == [("stuck", "expired", "either")]
    rule = Rule("both", keep=Keep(2), max_terminating_seconds=100)
    assert chosen(Policy((rule,)), stuck, *others) == [("stuck", "stuck-terminating", "both")]


def test_the_youngest_may_be_those_that_were_made_last() -> None:
    pods = (pod("old", 1, created=ago(1000)), pod("young", 100, created=ago(900)))
    assert names(Policy((Rule("keep", keep=Keep(1, order_by=KeepOrder.CREATION)),)), *pods) == ["old"]
    assert names(Policy((Rule("keep", keep=Keep(1)),)), *pods) == ["young"]


@pytest.mark.parametrize(
    "how",
    [
        {"statuses": [container(ago(900)), container(ago(10))]},
        {"statuses": [container(ago(900)), {**container(None), "lastState": {}}], "conditions": ["Ready"]},
        {"statuses": [], "conditions": ["DisruptionTarget"]},
        {"statuses": [], "created": ago(10)},
        {"statuses": [container(ago(900))], "conditions": [{"type": "Ready", "lastTransitionTime": "?"}]},
        {"statuses": [container("1970-01-01T00:05:00Z")], "created": ago(10)},
    ],
    ids=[
        "latest container",
        "container whose end is not known",
        "eviction",
        "nothing but its making",
        "no time",
        "node whose clock is behind",
    ],
)
def test_its_end_is_the_latest_moment_that_is_known(how: dict[str, Any]) -> None:
    how["conditions"] = [
        {"type": each, "status": "False", "lastTransitionTime": ago(10)} if isinstance(each, str) else each
        for each in how.get("conditions", [])
    ]
    assert names(Policy((Rule("brief", ttl_seconds=60),)), pod("a", **how)) == []


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (Selector(reasons=("OutOf*",)), ["full"]),
        (Selector(phases=("Failed",)), ["evicted", "full"]),
        (Selector(exit_codes=frozenset((137, 1))), ["full"]),
        (Selector(nodes=("gpu-?",)), ["evicted"]),
        (Selector(owner_kinds=("none",)), ["evicted", "full"]),
        (Selector(namespaces=("team-[a]",)), []),
        (Selector(namespaces=("team-*", "x")), ["done"]),
    ],
)
def test_a_selector_takes_what_all_of_it_holds_for(selector: Selector, expected: list[str]) -> None:
    pods = (
        pod("done", namespace="team-a", owner="Job"),
        pod("evicted", phase="Failed", reason="Evicted", node="gpu-1"),
        pod("full", phase="Failed", reason="OutOfcpu", code=137),
    )
    assert sorted(names(Policy((Rule("rule", selector, ttl_seconds=60),)), *pods)) == expected


def test_a_pod_of_a_namespace_that_is_not_known_is_nobodys_victim() -> None:
    policy = Policy((Rule("brief", ttl_seconds=60),))
    known = [{"metadata": {"name": "known"}}]
    pods = (pod("a", namespace="known"), pod("b", namespace="unknown"))
    assert names(policy, *pods, namespaces=known) == ["a"]


def test_a_pod_that_stays_beyond_its_grace_is_marked_first() -> None:
    policy = Policy((Rule("stuck", max_terminating_seconds=60),))
    stuck = pod("a", phase="Running", deletionTimestamp=ago(61))
    recent = pod("b", phase="Running", deletionTimestamp=ago(59))
    [victim] = planned(policy, stuck, recent)
    assert (victim.pod.metadata.name, victim.action) == ("a", Action.MARK_AND_DELETE)


def asked(policy: Policy, asked_about: Object, *others: Object) -> Any:
    settings = Settings(policy=policy)
    index: PodIndex = index_of(settings, [asked_about, *others], None, None, NOW)
    found = index.pod(asked_about["spec"]["nodeName"], asked_about["metadata"]["uid"])
    assert found is not None
    return standing_of(index, settings, found)


def test_a_pod_that_is_due_for_two_reasons_at_the_same_moment_goes_once() -> None:
    rule = Rule("both", ttl_seconds=60, max_terminating_seconds=60)
    twice = pod("a", statuses=[], deletionTimestamp=ago(100), deletionGracePeriodSeconds=30)
    assert chosen(Policy((rule,)), twice) == [("a", "expired", "both")]


def test_a_pod_that_the_collector_makes_failed_on_its_way_out_takes_the_place_of_none_that_stays() -> None:
    """Until it is gone, or stays after all: from then on it has ended like others."""
    settings = Settings(policy=Policy((Rule("keep", keep=Keep(2)),)))
    index = index_of(settings, [pod("a"), pod("b"), pod("orphan", phase="Running")], None, None, NOW)
    running = index.pod("node", "uid-orphan")
    assert running is not None
    index.begin_removal(running)
    failed = msgspec.convert(pod("orphan", 1, phase="Failed"), pod_view(settings))
    index.update_pod(running, failed, 0.0)
    assert list(victims(index, settings)) == []
    index.end_removal("node", "uid-orphan")
    assert [each.pod.metadata.name for each in victims(index, settings)] == ["a"]


def test_a_pod_that_is_being_removed_is_no_victim_of_a_rule_besides() -> None:
    settings = Settings(policy=Policy((Rule("brief", ttl_seconds=60),)))
    index = index_of(settings, [pod("a", phase="Running")], None, None, NOW)
    running = index.pod("node", "uid-a")
    assert running is not None
    index.begin_removal(running)
    failed = msgspec.convert(pod("a", 90, phase="Failed"), pod_view(settings))
    index.update_pod(running, failed, 0.0)
    assert victim_of(index, settings, failed) is None
    index.end_removal("node", "uid-a")
    assert victim_of(index, settings, failed) is not None


@pytest.mark.parametrize(
    ("how", "seconds"),
    [
        ({"ended_ago": 20}, 40),
        # It goes now, and no time need pass for that.
        ({"ended_ago": 60}, math.inf),
        ({"annotations": {KEEP_UNTIL: ago(-50)}}, 50),
        ({"phase": "Running", "deletionTimestamp": ago(10), "deletionGracePeriodSeconds": 30}, 20),
    ],
    ids=["its time to live ends", "nothing is to come", "its protection ends", "its grace is long over"],
)
def test_time_alone_changes_something_next_when(how: dict[str, Any], seconds: float) -> None:
    policy = Policy((Rule("brief", ttl_seconds=60, max_terminating_seconds=30),))
    index = index_of(Settings(policy=policy), [pod("a", **how)], None, None, NOW)
    assert index.classifier.next_due_at == NOW.timestamp() + seconds


def test_a_protection_until_a_moment_is_over_at_that_moment() -> None:
    policy = Policy((Rule("brief", ttl_seconds=60),))
    assert names(policy, pod("a", annotations={KEEP_UNTIL: ago(0)})) == ["a"]
    assert names(policy, pod("a", annotations={KEEP_UNTIL: ago(-1)})) == []


def test_how_a_pod_stands_tells_its_rule_when_it_goes_and_what_spares_it() -> None:
    exclude = (Selector(labels=parse_label_selector("debug")),)
    policy = Policy(
        (Rule("brief", exclude=exclude, ttl_seconds=60),), Protection(annotations=(("hold", "yes"),))
    )
    young = asked(policy, pod("a", 20))
    assert (young.rule, young.reason, young.due_at) == ("brief", "expired", NOW.timestamp() + 40)
    assert young.why == f"ended at {ago(20)}, may stay 1m"
    assert asked(policy, pod("a", labels={"debug": "1"})).excluded_by == "exclude 1 of rule brief"
    assert asked(policy, pod("a", annotations={"hold": "yes"})).protected_by == "annotation hold=yes"
    until = asked(policy, pod("a", annotations={KEEP_UNTIL: ago(-60)}))
    assert until.protected_by == f"annotation {KEEP_UNTIL}, until {ago(-60)}"
    alive = asked(policy, pod("a", phase="Running"))
    assert (alive.rule, alive.due_at, alive.protected_by) == ("brief", None, "")


def test_without_a_policy_no_victim_names_a_rule() -> None:
    [victim] = planned(None, pod("a"), pod("b"), threshold=1)
    assert (victim.pod.metadata.name, victim.rule) == ("a", "")
