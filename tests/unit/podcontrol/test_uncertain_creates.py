"""What may have been done though it failed, and what becomes of an owner in doubt."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from podlife.api.views import Metadata, MetadataOnly
from podlife.client import Client, DeadlineError, InProcessTransport, NotSentError
from podlife.errors import ApiError, ConflictError, ForbiddenError, UnreachableError
from podlife.podcontrol import Owner, UidTrackedExpectations, UncertainCreates
from podlife.podcontrol.uncertain_creates import may_have_happened
from podlife.testing import virtual_time
from podlife.wire import Request, Response

KEY = ("default", "web")
OWNER = Owner("apps/v1", "ReplicaSet", "web", "u", "default")
LOST = UnreachableError("the connection was lost")


@pytest.mark.parametrize(
    ("error", "may"),
    [
        (LOST, True),
        (DeadlineError("no answer"), True),
        (NotSentError("connection refused"), False),
        (ApiError("etcdserver: request timed out", code=500), True),
        (ApiError("bad gateway", code=502), True),
        (ApiError("timeout", code=504), True),
        (ForbiddenError("quota"), False),
        (ConflictError("no"), False),
        (ValueError("no labels"), False),
    ],
)
def test_only_what_left_and_was_not_answered_may_have_happened(error: Exception, may: bool) -> None:
    assert may_have_happened(error) == may


class Pods:
    """What the cache and the server have; the server may be away."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.made: dict[str, dict[str, Any]] = {}
        self.is_away = False

    def make(self, name: str, owner: str = "u", **metadata: Any) -> None:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner}
        owners = [{**reference, "controller": True}]
        about = {"name": name, "namespace": "default", "uid": name, "ownerReferences": owners, **metadata}
        self.made[name] = {"metadata": about}

    def get(self, namespace: str, name: str) -> MetadataOnly | None:
        return MetadataOnly(Metadata(name=name, namespace=namespace, uid=name)) if name in self.seen else None

    async def answer(self, request: Request) -> Response:
        if self.is_away:
            raise LOST
        body = {"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": list(self.made.values())}
        return Response(200, json.dumps(body).encode())


def uncertain_about(pods: Pods) -> tuple[UncertainCreates, UidTrackedExpectations]:
    expectations = UidTrackedExpectations()
    cache: Any = pods
    return UncertainCreates(Client(InProcessTransport(pods.answer)), cache, expectations), expectations


@virtual_time
async def test_pods_that_the_cache_does_not_show_are_expected_once_the_server_was_asked() -> None:
    pods = Pods()
    uncertain, expectations = uncertain_about(pods)
    pods.seen.add("seen")
    for name in ("seen", "lost", "made"):
        pods.make(name)
    pods.make("another's", owner="other")
    pods.make("going", deletionTimestamp="2030-01-01T00:00:00Z")
    expectations.expect_creations(KEY, 1)
    uncertain.note(KEY, [LOST])
    await uncertain.settle(KEY, OWNER)
    assert asyncio.get_running_loop().time() == 1, "the server may still have been at it"
    known = expectations.get(KEY)
    assert known is not None
    assert known.creations == 2


@virtual_time
async def test_an_owner_stays_in_doubt_until_the_server_answers() -> None:
    pods = Pods()
    uncertain, expectations = uncertain_about(pods)
    uncertain.note(KEY, [LOST])
    pods.is_away = True
    pods.make("lost")
    with pytest.raises(UnreachableError):
        await uncertain.settle(KEY, OWNER)
    pods.is_away = False
    await uncertain.settle(KEY, OWNER)
    assert not expectations.is_satisfied(KEY)


@virtual_time
async def test_a_refusal_leaves_no_doubt_and_one_that_is_forgotten_is_none() -> None:
    pods = Pods()
    pods.is_away = True
    uncertain, _ = uncertain_about(pods)
    uncertain.note(KEY, [ForbiddenError("quota")])
    await uncertain.settle(KEY, OWNER)
    uncertain.note(KEY, [LOST])
    uncertain.forget(KEY)
    # It would raise if the server were asked.
    await uncertain.settle(KEY, OWNER)
    assert asyncio.get_running_loop().time() == 0
