from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver.printers import EVENTS

from .situation import NOW, Situation, at, named


def event(name: str, cells: list[Any], *, involved: dict[str, Any] | None = None, **fields: Any) -> Situation:
    target = {"kind": "Pod", "name": "web", **(involved or {})}
    obj = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": named(name),
        "involvedObject": target,
        "type": "Normal",
        "reason": "Started",
        **fields,
    }
    return Situation(name, obj, [*cells, name])


def situations(now: float) -> list[Situation]:
    first, last = at(now - 600), at(now - 300)
    return [
        event(
            "classic",
            [
                "5m",
                "Normal",
                "Started",
                "pod/web",
                "spec.containers{main}",
                "kubelet, node-1",
                "up",
                "10m",
                7,
            ],
            involved={"fieldPath": "spec.containers{main}"},
            firstTimestamp=first,
            lastTimestamp=last,
            count=7,
            source={"component": "kubelet", "host": "node-1"},
            message="  up\n",
        ),
        event(
            "nameless",
            ["10m", "Normal", "Started", "pod", "", "kubelet", "", "10m", 1],
            involved={"name": ""},
            firstTimestamp=first,
            source={"component": "kubelet"},
        ),
        event("timeless", ["<unknown>", "Normal", "Started", "pod/web", "", "", "", "<unknown>", 1]),
        event(
            "modern",
            ["10m", "Warning", "Failed", "pod/web", "", "podlife, podlife-1", "no", "10m", 1],
            type="Warning",
            reason="Failed",
            eventTime=at(now - 600).replace("Z", ".000000Z"),
            action="Start",
            reportingComponent="podlife",
            reportingInstance="podlife-1",
            message="no",
        ),
        event(
            "series",
            ["5m", "Normal", "Started", "pod/web", "", "podlife, podlife-1", "", "10m", 4],
            eventTime=at(now - 600).replace("Z", ".000000Z"),
            series={"count": 4, "lastObservedTime": at(now - 300).replace("Z", ".000000Z")},
            action="Start",
            reportingComponent="podlife",
            reportingInstance="podlife-1",
        ),
    ]


@pytest.mark.parametrize("case", situations(NOW), ids=lambda case: case.name)
def test_event_is_shown_as_the_real_server_shows_it(case: Situation) -> None:
    assert EVENTS.cells(case.obj, NOW) == case.cells


def test_event_of_the_newer_group_is_shown_like_that_of_the_older() -> None:
    obj = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": named("new"),
        "regarding": {"kind": "Pod", "name": "web", "fieldPath": "spec"},
        "type": "Normal",
        "reason": "Started",
        "note": "up",
        "deprecatedFirstTimestamp": at(NOW - 600),
        "deprecatedLastTimestamp": at(NOW - 300),
        "deprecatedCount": 3,
        "deprecatedSource": {"component": "kubelet"},
    }
    assert EVENTS.cells(obj, NOW) == [
        "5m",
        "Normal",
        "Started",
        "pod/web",
        "spec",
        "kubelet",
        "up",
        "10m",
        3,
        "new",
    ]
