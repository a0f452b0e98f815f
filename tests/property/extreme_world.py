"""A whole cluster under virtual time that has to live with extreme objects, and the judge of whether it does.

All of it runs in one process: API server with its namespace cleanup, every controller (the pod collector twice, with
and without a policy), scheduler, node monitor, taint eviction, out-of-service controller, owner collector, node agents.
A component that ends fails the test by itself. What they log with a traceback is a failure too: an object that makes a
component stumble again and again is one that it does not live with.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from podlife.api.codec import Object
from podlife.apiserver.registry.object_codec import encoder
from podlife.apiserver.resource import Resource
from podlife.apiserver.resource_table import STORED
from podlife.apiserver.storage import Key, Put
from podlife.client import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, PODS, Client, Ref
from podlife.controller import ControlPlane, Runnable
from podlife.diagnosis import acting_rules
from podlife.errors import NotFoundError, PodlifeError
from podlife.explain import SnapshotReader, as_dict, explain_node, explain_pod
from podlife.nodehealth.out_of_service import OutOfServiceController, OutOfServiceSettings, Portion
from podlife.podgc import Collector, Settings
from podlife.podgc.policy.parse import load_policy
from podlife.testing import DEFAULT, Cluster, pod_gc
from podlife.wire import Handler, Peer, Query, Request, Response
from tests.component.out_of_service.world import Fence
from tests.property.extremes import Extreme

NAMESPACE = "odd"
_POLICY = Path(__file__).parents[2] / "examples" / "policies" / "ci.yaml"
_ADMINISTRATOR = Peer("admin", ("system:masters",))
_PLACES = ("n1", "n2", "missing", "odd-1", "")
# How many pods controllers may create there: one that wants 2,147,483,647 has a quota to live with.
_QUOTA = 60
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def all_in_one(plane: ControlPlane) -> Runnable:
    """Every controller there is, over one control plane: many planes would only be more timers."""
    lax = OutOfServiceSettings(after_seconds=60, most=Portion(percent=90), min_healthy=Portion(number=0))
    for make in DEFAULT.values():
        plane.add(make(plane))
    plane.add(pod_gc(Settings(threshold=5, policy=load_policy(_POLICY)))(plane))
    return OutOfServiceController(plane, checks=(Fence("n2", "odd-1", "odd-2"),), settings=lax)


@contextmanager
def failures_logged() -> Iterator[list[str]]:
    """Everything that is logged with the traceback of an error that nobody raised on purpose."""
    found: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info else None
            if error is not None and not isinstance(error, PodlifeError):
                trace = logging.Formatter().formatException(record.exc_info or (None, None, None))
                found.append(f"{record.getMessage()}\n{trace}")

    ear, logger = Ear(), logging.getLogger("podlife")
    logger.addHandler(ear)
    try:
        yield found
    finally:
        logger.removeHandler(ear)


class ExtremeWorld:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        # Past the API, where no user of the library has to be.
        self._store = cluster._inside.server.handler.registry.store
        self._created = 0
        cluster.api.disturb = self._with_quota

    @property
    def _client(self) -> Client:
        return self._cluster.client

    async def _with_quota(self, request: Request, onwards: Handler) -> Response:
        if request.method == "POST" and request.path == f"/api/v1/namespaces/{NAMESPACE}/pods":
            self._created += 1
            if self._created > _QUOTA and request.peer != _ADMINISTRATOR:
                status = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403}
                told = {**status, "message": 'pods "p" is forbidden: exceeded quota: q, limited: pods=60'}
                return Response(403, json.dumps(told).encode())
        return await onwards(request)

    async def begin(self) -> None:
        await self._client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        await self._client.create(DEPLOYMENTS, _canary(), "default")
        await self._cluster.settled()

    # Storing

    async def store(self, extremes: Iterable[Extreme]) -> None:
        """Each once through the API, where it may be refused, and once past it, as another server may have left it."""
        for number, extreme in enumerate(extremes):
            await self._send(extreme, _PLACES[number % len(_PLACES)])
            await self._plant(extreme, _PLACES[(number + 1) % len(_PLACES)])

    async def _send(self, extreme: Extreme, node: str) -> None:
        row, obj = extreme.resource, _placed(extreme, node)
        path = _path(row)
        answer = await self._request("POST", path, obj)
        if answer.status == 201 and row.strategy.has_status and obj.get("status"):
            name = obj["metadata"]["name"]
            await self._request("PATCH", f"{path}/{name}/status", {"status": obj["status"]})

    async def _plant(self, extreme: Extreme, node: str) -> None:
        row, obj = extreme.resource, _placed(extreme, node)
        if row.to_stored is not None:
            obj = row.to_stored(obj)
        obj.pop("kind", None)
        obj.pop("apiVersion", None)
        row.strategy.default(obj)
        if row.key == "pods":
            obj.setdefault("status", {}).setdefault("phase", "Pending")
        meta = obj["metadata"]
        meta["name"] = (
            f"{meta['name']}-planted"
            if row.key not in ("nodes", "leases.coordination.k8s.io")
            else meta["name"]
        )
        meta["uid"] = f"uid-{row.key}-{meta['name']}"
        meta.setdefault("creationTimestamp", "2030-01-01T00:00:00Z")
        if row.namespaced:
            meta["namespace"] = _namespace_of(row)
        key = Key(row.storage_key, meta.get("namespace", ""), meta["name"])
        if self._store.get(key) is None:
            await self._store.commit(Put(key, encoder(obj), expected=0))

    # Living with them

    async def live(self, *, last_minutes: int) -> None:
        """Everything that happens to a cluster; at last everything is deleted, and `last_minutes` pass."""
        cluster = self._cluster
        await cluster.advance(minutes=10)
        await self._look()
        await cluster.node("n2").power_off()
        await cluster.advance(minutes=10)
        await self._look()
        await cluster.node("n2").start()
        await cluster.node("n1").restart()
        await cluster.controllers.restart("all")
        await cluster.advance(minutes=10)
        await self._delete_everything()
        await cluster.advance(minutes=last_minutes)

    async def _look(self) -> None:
        """Read everything in every form, explain it, and plan a collection."""
        for row in STORED:
            for accept in ("application/json", _TABLE, "application/yaml"):
                assert (await self._request("GET", _path(row, everywhere=True), accept=accept)).status == 200
        reader = SnapshotReader(self._client, self._cluster.clock, acting_rules())
        world = await reader.everything()
        for pod in world.pods:
            as_dict(explain_pod(world, pod))
        assert world.nodes is not None
        for name in world.nodes:
            seen, node = await reader.node(name)
            if node is not None:
                as_dict(explain_node(seen, node))
        for settings in (Settings(threshold=1), Settings(policy=load_policy(_POLICY))):
            await Collector(self._client, settings, clock=self._cluster.clock).plan_once()

    async def _delete_everything(self) -> None:
        for pod in (await self._client.list(PODS, NAMESPACE)).items[::2]:
            try:
                await self._client.delete(PODS, pod["metadata"]["name"], NAMESPACE)
            except NotFoundError:
                continue
        await self._client.delete(NAMESPACES, NAMESPACE)

    async def judge(self) -> None:
        """Whether all of it is still at work: a rollout, a deletion, and the end of the namespace."""
        cluster, client = self._cluster, self._client
        assert not cluster.controllers.complaint
        assert all(node.is_registered for node in cluster.nodes.values())
        patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}}
        await client.patch(DEPLOYMENTS, "canary", patch, "default")
        await cluster.until(self._is_rolled_out, within=600, what="the canary's rollout")
        pod = (await client.list(PODS, "default")).items[0]
        await client.delete(PODS, pod["metadata"]["name"], "default")
        await cluster.until(lambda: self._is_gone(PODS, pod), within=600, what="the canary pod's end")
        await client.create(NAMESPACES, {"metadata": {"name": "after"}})
        await client.create(CONFIG_MAPS, {"metadata": {"name": "c"}}, "after")
        await client.delete(NAMESPACES, "after")
        gone = {"metadata": {"name": "after", "uid": ""}}
        await cluster.until(lambda: self._is_gone(NAMESPACES, gone), within=600, what="a namespace's end")

    async def _is_rolled_out(self) -> bool:
        found = await self._client.get(DEPLOYMENTS, "canary", "default")
        status = found.get("status") or {}
        is_seen = status.get("observedGeneration") == found["metadata"]["generation"]
        return (
            is_seen
            and status.get("updatedReplicas")
            == status.get("availableReplicas")
            == status.get("replicas")
            == 2
        )

    async def _is_gone(self, ref: Ref, obj: Object) -> bool:
        try:
            found = await self._client.get(ref, obj["metadata"]["name"], obj["metadata"].get("namespace", ""))
        except NotFoundError:
            return True
        return bool(obj["metadata"]["uid"]) and found["metadata"]["uid"] != obj["metadata"]["uid"]

    async def _request(self, method: str, path: str, body: object = None, *, accept: str = "") -> Response:
        path, _, query = path.partition("?")
        data = json.dumps(body).encode() if body is not None else b""
        headers = {"Accept": accept or "application/json"}
        if method == "PATCH":
            headers["Content-Type"] = "application/merge-patch+json"
        request = Request(method, path, query=Query(query), headers=headers, body=data, peer=_ADMINISTRATOR)
        answer = await self._cluster.api(request)
        assert answer.status < 500, f"{answer.status} for {method} {path} {data[:2000]!r}: {answer.body!r}"
        return answer


def _canary() -> Object:
    labels = {"app": "canary"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "canary"}, "spec": spec}


def _placed(extreme: Extreme, node: str) -> Object:
    """A copy of the object; a pod on a node, unless where it is is what is extreme about it."""
    obj: Object = json.loads(json.dumps(extreme.object))
    if extreme.resource.key == "pods" and (obj.get("spec") or {}).get("nodeName") == "somewhere":
        obj["spec"]["nodeName"] = node
    return obj


def _namespace_of(row: Resource) -> str:
    return "kube-node-lease" if row.plural == "leases" else NAMESPACE


def _path(row: Resource, *, everywhere: bool = False) -> str:
    prefix = f"/apis/{row.api_version}" if row.group else f"/api/{row.version}"
    if not row.namespaced or everywhere:
        return f"{prefix}/{row.plural}"
    return f"{prefix}/namespaces/{_namespace_of(row)}/{row.plural}"
