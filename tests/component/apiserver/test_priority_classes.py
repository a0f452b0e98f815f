"""The priority of a pod is that of its class."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver.endpoints import ApiHandler
from tests.component.apiserver.requests import ask
from tests.kit import embedded

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
async def handler() -> ApiHandler:
    handler = await embedded.start()
    classes: dict[str, dict[str, Any]] = {
        "high": {"value": 1000},
        "never": {"value": -5, "preemptionPolicy": "Never"},
    }
    for name, fields in classes.items():
        assert (await ask(handler, "POST", CLASSES, {"metadata": {"name": name}, **fields}))[0] == 201
    return handler


async def create(handler: ApiHandler, **spec: Any) -> tuple[int, Any]:
    given = {"containers": [{"name": "main", "image": "image"}], **spec}
    return await ask(handler, "POST", PODS, {"metadata": {"generateName": "p-"}, "spec": given})


@pytest.mark.parametrize(
    ("name", "priority", "policy"),
    [
        ("high", 1000, "PreemptLowerPriority"),
        ("never", -5, "Never"),
        ("system-node-critical", 2000001000, "PreemptLowerPriority"),
        ("", 0, "PreemptLowerPriority"),
    ],
)
async def test_a_pod_has_the_values_of_its_class(
    handler: ApiHandler, name: str, priority: int, policy: str
) -> None:
    code, pod = await create(handler, **({"priorityClassName": name} if name else {}))
    assert (code, pod["spec"]["priority"], pod["spec"]["preemptionPolicy"]) == (201, priority, policy)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"priorityClassName": "nothing"}, "no PriorityClass with name nothing was found"),
        (
            {"priorityClassName": "high", "priority": 5},
            "the integer value of priority (5) must not be provided",
        ),
        (
            {"priorityClassName": "never", "preemptionPolicy": "PreemptLowerPriority"},
            "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided",
        ),
    ],
)
async def test_a_pod_cannot_choose_other_values(
    handler: ApiHandler, spec: dict[str, Any], words: str
) -> None:
    code, answer = await create(handler, **spec)
    assert (code, words in answer["message"]) == (403, True)


async def test_the_only_default_class_is_that_of_pods_without_one(handler: ApiHandler) -> None:
    default = {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True}
    assert (await ask(handler, "POST", CLASSES, default))[0] == 201
    code, pod = await create(handler)
    assert (code, pod["spec"]["priorityClassName"], pod["spec"]["priority"]) == (201, "usual", 7)
    second = {"metadata": {"name": "second"}, "value": 8, "globalDefault": True}
    code, answer = await ask(handler, "POST", CLASSES, second)
    assert (code, "usual is already marked as default" in answer["message"]) == (403, True)
    assert (await ask(handler, "DELETE", f"{CLASSES}/usual"))[0] == 200
    assert "priorityClassName" not in (await create(handler))[1]["spec"]
    assert (await ask(handler, "POST", CLASSES, second))[0] == 201
