from __future__ import annotations

from podlife.apiserver.strategies import SELECTABLE, from_events_v1, to_events_v1


def test_absent_fields_of_a_pod_select_as_empty_and_false() -> None:
    fields = SELECTABLE["pods"]
    assert fields["spec.nodeName"]({}) == ""
    assert fields["spec.hostNetwork"]({"spec": {}}) == "false"
    assert fields["status.phase"]({"status": {"phase": "Running"}}) == "Running"


def test_counts_select_as_text() -> None:
    assert SELECTABLE["jobs.batch"]["status.successful"]({"status": {"succeeded": 3}}) == "3"
    assert SELECTABLE["replicasets.apps"]["status.replicas"]({}) == "0"


def test_the_source_of_an_event_is_its_component_or_else_who_reported_it() -> None:
    source = SELECTABLE["events"]["source"]
    assert source({"source": {"component": "kubelet"}, "reportingComponent": "x"}) == "kubelet"
    assert source({"source": {}, "reportingComponent": "x"}) == "x"


def test_an_event_keeps_everything_through_both_shapes() -> None:
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "note": "text",
        "regarding": {"kind": "Pod"},
        "reportingController": "c",
        "deprecatedCount": 2,
    }
    core = from_events_v1(event)
    assert core["message"] == "text"
    assert core["involvedObject"] == {"kind": "Pod"}
    assert core["apiVersion"] == "v1"
    assert to_events_v1(core) == event
    assert SELECTABLE["events.events.k8s.io"]["regarding.kind"](core) == "Pod"
