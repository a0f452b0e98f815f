"""What a pod refers to, and one call for all who ask for it at the same time."""

from __future__ import annotations

import asyncio

from podlife.kubelet.object_cache import named_config_maps, named_secrets
from podlife.kubelet.object_cache.single_flight import SingleFlight

POD = {
    "spec": {
        "imagePullSecrets": [{"name": "pull"}, {}],
        "initContainers": [
            {"envFrom": [{"configMapRef": {"name": "from-init"}}, {"secretRef": {"name": "s1"}}]}
        ],
        "containers": [
            {
                "env": [
                    {"name": "A", "value": "plain"},
                    {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "by-key", "key": "k"}}},
                    {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s2", "key": "k"}}},
                ]
            }
        ],
        "volumes": [
            {"name": "v", "configMap": {"name": "as-volume"}},
            {"name": "w", "secret": {"secretName": "s3"}},
            {
                "name": "p",
                "projected": {"sources": [{"configMap": {"name": "projected"}}, {"secret": {"name": "s4"}}]},
            },
        ],
    }
}


def test_config_maps_are_found_wherever_a_pod_may_name_them() -> None:
    assert named_config_maps(POD) == {"from-init", "by-key", "as-volume", "projected"}


def test_secrets_are_found_wherever_a_pod_may_name_them_also_for_pulling_images() -> None:
    assert named_secrets(POD) == {"pull", "s1", "s2", "s3", "s4"}


def test_a_pod_without_anything_names_nothing() -> None:
    assert named_config_maps({}) == named_secrets({"spec": {}}) == frozenset()


async def test_who_asks_again_as_soon_as_a_call_has_ended_has_a_new_one() -> None:
    """Not its old answer again and again, for as long as nobody else gets a turn to take note of its end."""
    calls: SingleFlight[int] = SingleFlight()
    made = 0

    async def call() -> int:
        nonlocal made
        made += 1
        return made

    async def ask_until_it_is_new() -> int:
        answer = 0
        for _ in range(3):
            answer = await calls.join("key", "call", call)
        return answer

    answers = await asyncio.gather(*(ask_until_it_is_new() for _ in range(3)))
    assert min(answers) > 1
