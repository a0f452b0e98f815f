"""Which container a request means."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.kubelet.server.containers import container_to_exec, container_to_log
from podlife.kubelet.server.request import HttpError

ENDED = {"terminated": {"containerID": "c://old"}}
NEVER_WAS = {"terminated": {"exitCode": 137}}


def pod(
    state: dict[str, Any] | None, last: dict[str, Any] | None = None, field: str = "containerStatuses"
) -> Any:
    status = {"name": "main", "containerID": "c://now", "state": state or {}, "lastState": last or {}}
    return {"metadata": {"name": "web"}, "status": {field: [status]}}


@pytest.mark.parametrize(
    ("state", "last", "previous", "meant"),
    [
        ({"running": {}}, None, False, "c://now"),
        ({"running": {}}, ENDED, True, "c://old"),
        ({"terminated": {"containerID": "c://end"}}, ENDED, False, "c://end"),
        (NEVER_WAS, ENDED, False, "c://old"),
        ({"waiting": {"reason": "CrashLoopBackOff"}}, ENDED, False, "c://old"),
    ],
)
def test_the_log_is_of_the_instance_that_has_one(
    state: dict[str, Any], last: dict[str, Any] | None, previous: bool, meant: str
) -> None:
    assert container_to_log(pod(state, last), "main", previous=previous) == meant


@pytest.mark.parametrize(
    "field", ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"]
)
def test_containers_of_every_sort_are_found(field: str) -> None:
    assert container_to_log(pod({"running": {}}, field=field), "main", previous=False) == "c://now"


def waiting(reason: str) -> dict[str, Any]:
    return {"waiting": {"reason": reason}}


@pytest.mark.parametrize(
    ("state", "last", "previous", "line"),
    [
        ({"running": {}}, None, True, "previous terminated {} not found"),
        ({"running": {}}, NEVER_WAS, True, "previous terminated {} not found"),
        (NEVER_WAS, None, False, "{} is terminated"),
        ({"waiting": {}}, NEVER_WAS, False, "{} is terminated"),
        (waiting("PodInitializing"), None, False, "{} is waiting to start: PodInitializing"),
        (waiting("ErrImagePull"), None, False, "{} is waiting to start: image can't be pulled"),
        (
            waiting("ImagePullBackOff"),
            None,
            False,
            "{} is waiting to start: trying and failing to pull image",
        ),
        (None, None, False, "{} is waiting to start - no logs yet"),
    ],
)
def test_why_there_is_no_log_is_said_in_the_kubelets_words(
    state: dict[str, Any] | None, last: dict[str, Any] | None, previous: bool, line: str
) -> None:
    with pytest.raises(HttpError) as refused:
        container_to_log(pod(state, last), "main", previous=previous)
    assert (refused.value.code, str(refused.value)) == (400, line.format('container "main" in pod "web"'))


def test_a_container_without_a_status_is_not_available() -> None:
    with pytest.raises(HttpError, match='container "other" in pod "web" is not available'):
        container_to_log(pod({"running": {}}), "other", previous=False)


def test_a_command_is_run_only_in_a_container_that_runs() -> None:
    assert container_to_exec(pod({"running": {}}), "main") == "c://now"
    states: tuple[dict[str, Any] | None, ...] = ({"waiting": {}}, ENDED, None)
    for state in states:
        with pytest.raises(HttpError, match=r'container not found \("main"\)'):
            container_to_exec(pod(state), "main")
