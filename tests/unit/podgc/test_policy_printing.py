"""A policy in words, and as the file that leaves nothing out."""

from __future__ import annotations

from podlife.api.durations import format_exact
from podlife.podgc import Reason, Settings
from podlife.podgc.policy.model import Policy
from podlife.podgc.policy.parse import read_policy
from podlife.podgc.policy.parse.numbers import format_share
from podlife.podgc.policy_printing import as_document, in_words
from tests.unit.podgc.policy.parse.test_document import HEAD, WHOLE

WORDS = """\
protected: pods of namespace kube-system or prod-*
protected: pods with labels podlife.dev/keep=true
protected: pods with labels tier in (gold)
protected: pods with annotation example.com/hold
protected: pods with annotation example.com/state=frozen
protected: pods with annotation podlife.dev/keep-until, until then
rule evicted: ended pods in phase Failed with reason Evicted or OutOf* in every namespace go 10m after their end
rule jobs (off): ended pods with exit code 1 or 137 owned by a Job or without a controller with labels app in (a,b) \
on node gpu-* in namespace team-* with labels env!=prod, but not pods with labels debug=true in every namespace, \
go 1d after their end, and before that the 5 that were created last of each owner stay, and the others go at once; \
each waits until its owner has seen the end, at most 10m after it
rule stuck: pods in namespace ci, but not pods on node n1 in every namespace, go when they were deleted and are \
still there 15m after their grace
upstream/terminated: ended pods that no rule has go, but 500 of them stay, the youngest
upstream/out-of-service: off
upstream/orphaned: pods go whose node has been gone for 1m30s
upstream/unscheduled: terminating pods go that were never scheduled
guard: nothing is changed: actions are only reported
guard: at most 100 pods go in any minute
guard: at most 500 pods go in one pass
guard: where one pass would take more than 50% of the pods of a namespace, and more than 3, none goes until a \
person says so
guard: where one pass would take more than 12.5% of the pods of the cluster, and more than 3, none goes until a \
person says so
guard: pods go only on Mon, Tue, Wed, Sat from 22:00 to 06:00 (Europe/Berlin), or on Mon, Sat, Sun from 00:00 to \
24:00 (UTC)
"""


def words_of(rule: str) -> str:
    policy = read_policy(f"{HEAD}rules: [{{name: a, {rule}}}]", "p")
    return next(line for line in in_words(policy) if line.startswith("rule "))


def test_every_part_of_a_policy_has_its_words() -> None:
    assert "\n".join(in_words(read_policy(HEAD + WHOLE, "p"))) + "\n" == WORDS


def test_the_limits_of_a_rule_are_told_apart() -> None:
    everywhere = "rule a: ended pods in every namespace"
    assert words_of("keep: {count: 0}") == f"{everywhere} go at once"
    assert words_of("keep: {count: 0}, ttlAfterFinished: 1h") == f"{everywhere} go 1h after their end"
    assert words_of("keep: {count: 0}, ttlAfterFinished: 1h, collectWhen: any") == f"{everywhere} go at once"
    assert (
        words_of("keep: {count: 1, per: node}")
        == f"{everywhere} go, but the 1 that ended last of each node stays"
    )
    assert (
        words_of("keep: {count: 2}, ttlAfterFinished: 0")
        == f"{everywhere} go 0s after their end, but the 2 that ended last in the whole cluster stay "
        "for as long as they are that"
    )
    # Pods that run go by the second as well.
    assert words_of("ttlAfterFinished: 1h, maxTerminating: 5m") == (
        f"{everywhere} go 1h after their end; "
        "pods in every namespace go when they were deleted and are still there 5m after their grace"
    )
    assert words_of("maxTerminating: 0s, select: {ownerKind: [none], namespaces: {labels: a=b}}") == (
        "rule a: pods without a controller in namespaces with labels a=b go when they were deleted and are "
        "still there 0s after their grace"
    )


def test_without_a_file_it_is_what_the_flags_say() -> None:
    settings = Settings(threshold=0, quarantine_seconds=5, collect=frozenset(Reason) - {Reason.UNSCHEDULED})
    assert in_words(None, settings) == [
        "upstream/terminated: off",
        "upstream/out-of-service: terminating pods go whose node is not ready and out of service",
        "upstream/orphaned: pods go whose node has been gone for 5s",
        "upstream/unscheduled: off",
    ]
    upstream = as_document(Policy(), settings)["upstream"]
    assert upstream["terminated"] == {"enabled": False, "threshold": 0}
    assert upstream["orphaned"] == {"enabled": True, "quarantine": "5s"}


def test_lengths_and_shares_are_told_exactly() -> None:
    lengths = [0, 0.5, 40, 90, 3600, 86_400, 90_061, 1e-9]
    assert [format_exact(each) for each in lengths] == [
        "0s",
        "0.5s",
        "40s",
        "1m30s",
        "1h",
        "1d",
        "1d1h1m1s",
        "0.000000001s",
    ]
    assert [format_share(each) for each in (0.5, 1.0, 0.125, 0.001)] == ["50%", "100%", "12.5%", "0.1%"]
