"""An API server of pods with a diary, the pods that an agent knows, and a status manager between the two."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from podlife.api.patch import strategic_merge_patch
from podlife.clock import ManualClock
from podlife.errors import ApiError, ConflictError, NotFoundError
from podlife.kubelet.pod_fields import is_static
from podlife.kubelet.status.manager import StatusManager

Object = dict[str, Any]


class World:
    def __init__(self) -> None:
        self.server: dict[tuple[str, str], Object] = {}
        self.known: dict[str, Object] = {}
        self.running: set[str] = set()
        self.diary: list[str] = []
        self.patches: list[Object] = []
        self.deletes: list[tuple[str, str]] = []
        self.failures: dict[str, ApiError] = {}
        self.ended: list[tuple[str, int, str]] = []
        self.clock = ManualClock()
        self.manager = StatusManager(
            self, self, self.clock, on_terminated=lambda *ended: self.ended.append(ended)
        )

    def add(self, pod: Object) -> Object:
        """To the API server and to the agent, each with a copy of its own."""
        self.server[_key(pod)] = copy.deepcopy(pod)
        self.known[pod["metadata"]["uid"]] = pod
        return pod

    def shown(self, pod: Object) -> Object:
        return self.server[_key(pod)]

    def see(self, pod: Object) -> None:
        """The agent learns what the API server holds."""
        self.known[pod["metadata"]["uid"]] = copy.deepcopy(self.shown(pod))

    def diary_since(self) -> list[str]:
        """What was asked of the API server since the last look."""
        said, self.diary[:] = list(self.diary), []
        return said

    # The API server

    async def get(self, namespace: str, name: str) -> Object:
        self._asked("GET")
        if (namespace, name) not in self.server:
            raise NotFoundError("no such pod")
        return copy.deepcopy(self.server[namespace, name])

    async def patch_status(self, namespace: str, name: str, patch: Object) -> Object:
        self._asked("PATCH")
        pod = self.server[namespace, name]
        if patch["metadata"]["uid"] != pod["metadata"]["uid"]:
            raise ConflictError("another UID")
        self.patches.append(patch)
        changed = strategic_merge_patch(pod, copy.deepcopy(patch), "v1", "Pod")
        self.server[namespace, name] = changed
        return copy.deepcopy(changed)

    async def delete(self, namespace: str, name: str, *, uid: str) -> None:
        self._asked("DELETE")
        if (namespace, name) not in self.server:
            raise NotFoundError("no such pod")
        if self.server[namespace, name]["metadata"]["uid"] != uid:
            raise ConflictError("another UID")
        self.deletes.append((name, uid))
        del self.server[namespace, name]

    def _asked(self, verb: str) -> None:
        self.diary.append(verb)
        if verb in self.failures:
            raise self.failures[verb]

    # The agent

    def pod(self, uid: str) -> Object | None:
        return self.known.get(uid)

    def mirror_of(self, pod: Mapping[str, Any]) -> Object | None:
        assert is_static(pod), "only static pods have mirrors"
        return next(
            (
                each
                for each in self.known.values()
                if each["metadata"]["name"] == pod["metadata"]["name"] and not is_static(each)
            ),
            None,
        )

    def could_have_running_containers(self, uid: str) -> bool:
        return uid in self.running


def _key(pod: Object) -> tuple[str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]
