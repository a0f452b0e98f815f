"""Waits for what other programs do in a namespace, and plays the node's part for pods that nobody runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kubernetes import config, dynamic

from tests.kit.real_parts import Server
from tests.real.clients.objects import READY
from tests.real.clients.pair import One

Object = dict[str, Any]
PATIENCE_SECONDS = 180

_KINDS = {
    "pods": ("v1", "Pod"),
    "replicasets": ("apps/v1", "ReplicaSet"),
    "deployments": ("apps/v1", "Deployment"),
    "statefulsets": ("apps/v1", "StatefulSet"),
    "jobs": ("batch/v1", "Job"),
    "poddisruptionbudgets": ("policy/v1", "PodDisruptionBudget"),
    "namespaces": ("v1", "Namespace"),
}


@contextmanager
def open_world(server: Server, namespace: str) -> Iterator[World]:
    with config.new_client_from_config(str(server.kubeconfig)) as api:
        yield World(server, namespace, dynamic.DynamicClient(api))


class World:
    """One namespace of a server whose controllers are somebody else's."""

    def __init__(self, server: Server, namespace: str, client: dynamic.DynamicClient) -> None:
        self.namespace = namespace
        self.kubectl = One(server, namespace)
        self._client = client

    def until(self, resource: str, holds: Callable[[dict[str, Object]], bool]) -> dict[str, Object]:
        """Follows a collection until something holds of its objects by name; fails when it never does."""
        api_version, kind = _KINDS[resource]
        handle = self._client.resources.get(api_version=api_version, kind=kind)
        scope = {} if resource == "namespaces" else {"namespace": self.namespace}
        listed = handle.get(**scope).to_dict()
        found = {item["metadata"]["name"]: item for item in listed["items"]}
        if holds(found):
            return found
        start = listed["metadata"]["resourceVersion"]
        for event in handle.watch(**scope, resource_version=start, timeout=PATIENCE_SECONDS):
            item = event["raw_object"]
            if event["type"] == "DELETED":
                found.pop(item["metadata"]["name"], None)
            else:
                found[item["metadata"]["name"]] = item
            if holds(found):
                return found
        raise AssertionError(f"{resource} never got there, they are: {found}")

    def pods(self, count: int) -> dict[str, Object]:
        """As soon as there are so many pods that are not on their way out."""
        return _living(self.until("pods", lambda pods: len(_living(pods)) == count))

    def make_ready(self, *names: str) -> None:
        for name in names:
            self.kubectl.set_status(f"pod/{name}", READY["status"])


def _living(pods: dict[str, Object]) -> dict[str, Object]:
    return {name: pod for name, pod in pods.items() if "deletionTimestamp" not in pod["metadata"]}
