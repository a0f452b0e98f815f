"""Authorizes callers: asks the API server whether they may use the part of the node's API.

As upstream, a yes is cached for five minutes and a no for thirty seconds. Where two subresources cover a path, the
narrow one (`nodes/pods`, `nodes/healthz`) is checked first and `nodes/proxy`, which is everything, after it.
"""

from __future__ import annotations

import logging

from podlife.api.codec import Object, decode_object
from podlife.client import Client
from podlife.errors import PodlifeError
from podlife.kubelet.server.request import HttpError
from podlife.lru import TtlCache

from .authentication import Caller

log = logging.getLogger(__name__)

_PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_YES_SECONDS, _NO_SECONDS = 300.0, 30.0
_VERBS = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NARROW = {"/pods": "pods", "/runningpods": "pods", "/healthz": "healthz", "/configz": "configz"}
_INSTEAD = {"/stats": "stats", "/metrics": "metrics", "/logs": "log"}

_Question = tuple[Caller, str, str]


class Authorizer:
    def __init__(self, client: Client, node_name: str) -> None:
        self._client = client
        self._node_name = node_name
        self._kept: TtlCache[_Question, bool] = TtlCache()

    async def authorize(self, caller: Caller, method: str, path: str) -> None:
        """Raises HttpError: 403 where they may not, 500 where nobody could be asked."""
        verb = _VERBS.get(method, "")
        subresources = subresources_of(path)
        for subresource in subresources:
            if await self._may(caller, verb, subresource):
                return
        shown = " ".join(subresources)
        line = f"Forbidden (user={caller.name}, verb={verb}, resource=nodes, subresource(s)=[{shown}])\n"
        raise HttpError(403, line)

    async def _may(self, caller: Caller, verb: str, subresource: str) -> bool:
        question = (caller, verb, subresource)
        if (known := self._kept.get(question)) is not None:
            return known
        try:
            reply = await self._client.request("POST", _PATH, body=self._review(caller, verb, subresource))
            allowed = (decode_object(reply.body).get("status") or {}).get("allowed") is True
        except (PodlifeError, ValueError) as error:
            log.warning("authorization of %s failed: %s", caller.name, error)
            what = f"user={caller.name}, verb={verb}, resource=nodes, subresource={subresource}"
            raise HttpError(500, f"Authorization error ({what})") from None
        self._kept.keep(question, allowed, seconds=_YES_SECONDS if allowed else _NO_SECONDS)
        return allowed

    def _review(self, caller: Caller, verb: str, subresource: str) -> Object:
        attributes = {
            "verb": verb,
            "version": "v1",
            "resource": "nodes",
            "subresource": subresource,
            "name": self._node_name,
        }
        spec: Object = {"user": caller.name, "resourceAttributes": attributes}
        if caller.uid:
            spec["uid"] = caller.uid
        if caller.groups:
            spec["groups"] = list(caller.groups)
        if caller.extra:
            spec["extra"] = {key: list(values) for key, values in caller.extra}
        return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


def subresources_of(path: str) -> tuple[str, ...]:
    """Any of these of the node is enough for this path, as upstream reads it."""
    narrow = tuple(name for root, name in _NARROW.items() if _is_below(path, root))
    instead = tuple(name for root, name in _INSTEAD.items() if _is_below(path, root))
    return (*narrow, *(instead or ("proxy",)))


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root + "/")
