from __future__ import annotations

from podlife.apiserver.strategies import SELECTABLE


def test_absent_fields_of_a_pod_select_as_empty_and_false() -> None:
    fields = SELECTABLE["pods"]
    assert fields["spec.nodeName"]({}) == ""
    assert fields["spec.hostNetwork"]({"spec": {}}) == "false"
    assert fields["status.phase"]({"status": {"phase": "Running"}}) == "Running"


def test_counts_select_as_text() -> None:
    assert SELECTABLE["jobs.batch"]["status.successful"]({"status": {"succeeded": 3}}) == "3"


def test_the_source_of_an_event_is_its_component_or_else_who_reported_it() -> None:
    source = SELECTABLE["events"]["source"]
    assert source({"source": {"component": "kubelet"}, "reportingComponent": "x"}) == "kubelet"
    assert source({"source": {}, "reportingComponent": "x"}) == "x"


def test_an_event_is_selected_by_the_names_of_either_group() -> None:
    event = {"involvedObject": {"kind": "Pod"}, "reportingComponent": "c"}
    assert SELECTABLE["events"]["involvedObject.kind"](event) == "Pod"
    assert SELECTABLE["events.events.k8s.io"]["regarding.kind"](event) == "Pod"
    assert SELECTABLE["events.events.k8s.io"]["reportingController"](event) == "c"
