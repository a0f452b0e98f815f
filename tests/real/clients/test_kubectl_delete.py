"""kubectl delete with every flag for grace and cascade."""

from __future__ import annotations

import pytest

from tests.real.clients import objects
from tests.real.clients.pair import Pair, manifest


@pytest.fixture
def running(pair: Pair) -> Pair:
    """A pod that its node has not finished yet: only then is there a grace to give."""
    pod = objects.pod("running", nodeName="node-x", terminationGracePeriodSeconds=25)
    pair("create", "-f", "-", stdin=manifest(pod))
    return pair


@pytest.mark.parametrize(
    ("flags", "grace_seconds"),
    [
        ([], 25),
        (["--grace-period=7"], 7),
        (["--now"], 1),
        (["--grace-period=-1"], 25),
        (["--timeout=5s"], 25),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_a_running_pod_is_marked_with_the_grace_that_was_asked_for(
    running: Pair, flags: list[str], grace_seconds: int
) -> None:
    running("delete", "pod", "running", "--wait=false", *flags)
    metadata = running.get("pod", "running")["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == grace_seconds
    assert "deletionTimestamp" in metadata


@pytest.mark.parametrize("flags", [["--force"], ["--force", "--grace-period=0"]], ids=" ".join)
def test_force_removes_a_running_pod_at_once(running: Pair, flags: list[str]) -> None:
    said = running("delete", "pod", "running", *flags)
    assert "Immediate deletion does not wait" in said.err
    assert running.is_gone("pod", "running")


def test_a_grace_of_zero_without_force_becomes_one_second(running: Pair) -> None:
    running("delete", "pod", "running", "--grace-period=0", "--wait=false")
    assert running.get("pod", "running")["metadata"]["deletionGracePeriodSeconds"] == 1


def test_waiting_for_the_end_of_a_pod_that_does_not_end_times_out(running: Pair) -> None:
    running("delete", "pod", "running", "--timeout=5s", code=1)
    assert "deletionTimestamp" in running.get("pod", "running")["metadata"]


def test_a_pod_without_a_node_is_gone_at_once(pair: Pair) -> None:
    pair("create", "-f", "-", stdin=manifest(objects.pod("unscheduled")))
    pair("delete", "pod", "unscheduled")
    assert pair.is_gone("pod", "unscheduled")


def test_pods_are_deleted_by_label_by_field_and_all(pair: Pair) -> None:
    names = {"a": "one", "b": "two", "c": "three", "d": "three"}
    pair("create", "-f", "-", stdin=manifest(*(objects.pod(name, app=app) for name, app in names.items())))
    pair("delete", "pods", "-l", "app=one")
    pair("delete", "pods", "--field-selector", "metadata.name=b")
    assert [item["metadata"]["name"] for item in pair.get("pods")] == ["c", "d"]
    pair("delete", "pods", "--all")
    assert pair.get("pods") == []


def test_a_dry_run_deletes_nothing(running: Pair) -> None:
    running("delete", "pod", "running", "--dry-run=server")
    assert "deletionTimestamp" not in running.get("pod", "running")["metadata"]


def test_what_is_not_there_is_said_unless_it_may_be_missing(pair: Pair) -> None:
    pair("delete", "pod", "missing", code=1)
    pair("delete", "pod", "missing", "--ignore-not-found")
    pair("delete", "-f", "-", stdin=manifest(objects.pod("missing")), code=1)


@pytest.mark.parametrize(
    ("cascade", "finalizers"),
    [("foreground", ["foregroundDeletion"]), ("orphan", ["orphan"]), ("background", None)],
)
def test_each_cascade_leaves_its_finalizer_for_the_garbage_collector(
    pair: Pair, cascade: str, finalizers: list[str] | None
) -> None:
    pair("create", "-f", "-", stdin=manifest(objects.deployment("web")))
    pair("delete", "deployment", "web", f"--cascade={cascade}", "--wait=false")
    if finalizers is None:
        assert pair.is_gone("deployment", "web")
    else:
        assert pair.get("deployment", "web")["metadata"]["finalizers"] == finalizers


def test_a_finalizer_holds_an_object_until_it_is_taken_away(pair: Pair) -> None:
    held = objects.config_map("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    pair("create", "-f", "-", stdin=manifest(held))
    pair("delete", "configmap", "held", "--wait=false")
    assert "deletionTimestamp" in pair.get("configmap", "held")["metadata"]
    pair("patch", "configmap", "held", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]')
    assert pair.is_gone("configmap", "held")


def test_a_namespace_goes_with_what_is_in_it(pair: Pair) -> None:
    pair.ours("create", "namespace", "short-lived")
    pair.ours("-n", "short-lived", "create", "configmap", "inside")
    pair.ours("-n", "short-lived", "run", "inside", "--image=i")
    pair.ours("delete", "namespace", "short-lived", "--timeout=180s")
    assert pair.is_gone("namespace", "short-lived")
    assert pair.is_gone("-n", "short-lived", "pod", "inside")
