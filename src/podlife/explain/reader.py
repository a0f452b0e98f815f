"""Reads what a diagnosis needs: gets and lists, never writes.

What may not be read, or is not served, is skipped and listed in `ClusterSnapshot.unread`; the rest is explained
without it. Only the object asked for must be readable.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from podlife.api.codec import Object
from podlife.api.managed_fields import field_setter
from podlife.client import (
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Client,
    ListOptions,
    Ref,
)
from podlife.clock import Clock
from podlife.errors import ApiError, ExpiredError, NotFoundError
from podlife.explain.cluster_snapshot import ActionRules, ClusterSnapshot
from podlife.explain.deleted_by import is_its_own
from podlife.explain.objects import (
    condition,
    controller_of,
    has_ended,
    is_terminating,
    metadata,
    spec,
    status,
    text,
    updated,
)
from podlife.explain.volumes import claims_of

T = TypeVar("T")

_LEASE_NAMESPACE = "kube-node-lease"
_ATTACHMENTS = Ref("storage.k8s.io", "v1", "volumeattachments", namespaced=False, kind="VolumeAttachment")
_OWNERS = {ref.kind: ref for ref in (REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS, REPLICATION_CONTROLLERS)}
_SCALED = {ref.kind: ref for ref in (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, REPLICATION_CONTROLLERS)}
_PAGE = 500
# As many events of a namespace are looked through for what they tell of others than their own object.
_MOST_EVENTS = 20_000


class SnapshotReader:
    def __init__(self, client: Client, clock: Clock, rules: ActionRules) -> None:
        self._client = client
        self._clock = clock
        self._rules = rules
        self._unread: dict[str, None] = {}

    async def pod(self, namespace: str, name: str) -> tuple[ClusterSnapshot, Object]:
        """The pod with what matters to it. Raises NotFoundError where there is none."""
        pod: Object = await self._client.get(PODS, name, namespace)
        world = ClusterSnapshot(self._clock.now(), self._rules, claims=await self._claims_of(pod))
        world = replace(world, events=await self._events_of(namespace, pod))
        if node := text(spec(pod), "nodeName"):
            world = await self._with_node(world, node)
        elif not is_terminating(pod):
            world = await self._with_all_nodes(world, pod)
        world = replace(world, replica_sets=await self._owner_of(pod, REPLICA_SETS))
        if has_ended(pod) and not is_terminating(pod):
            world = replace(world, jobs=await self._owner_of(pod, JOBS))
        world = await self._with_attachments(world)
        if any(spec(each).get("unschedulable") for each in (world.nodes or {}).values()):
            budgets = await self._list(POD_DISRUPTION_BUDGETS, namespace)
            world = replace(world, budgets=budgets or ())
        if is_terminating(pod) and not condition(pod, "DisruptionTarget"):
            world = replace(
                world,
                went_with=await self._went_with(pod),
                replicas_set_by=await self._replicas_set_by(world, pod),
            )
        return self._finished(world), pod

    async def absent_pod(self, namespace: str) -> tuple[ClusterSnapshot, Sequence[Object]]:
        """What there is where a pod is not: the events of its namespace."""
        events = await self._list(EVENTS, namespace, most=_MOST_EVENTS) or []
        return self._finished(ClusterSnapshot(self._clock.now(), self._rules)), events

    async def node(self, name: str) -> tuple[ClusterSnapshot, Object | None]:
        """The node, None where there is none, and the pods that say that they are on it."""
        world = await self._with_node(ClusterSnapshot(self._clock.now(), self._rules), name)
        node = (world.nodes or {}).get(name)
        if world.nodes is None:
            # Here it is what was asked for: why it cannot be read is the answer.
            await self._client.get(NODES, name)
        selection = ListOptions(field_selector=f"spec.nodeName={name}")
        world = replace(world, pods=await self._list(PODS, options=selection) or ())
        if node is not None:
            world = replace(world, events=await self._events_of("", node))
            if spec(node).get("unschedulable"):
                world = replace(world, budgets=await self._list(POD_DISRUPTION_BUDGETS) or ())
        return self._finished(world), node

    async def everything(self, namespace: str = "") -> ClusterSnapshot:
        """All pods of a namespace, or of all, with what their diagnosis needs. Pods are read before nodes: a pod's node
        was there before it. Raises ApiError when not even the pods may be read."""
        pods = await self._pods(namespace)
        nodes = await self._list(NODES)
        leases = await self._list(LEASES, _LEASE_NAMESPACE)
        claims = await self._list(PERSISTENT_VOLUME_CLAIMS, namespace)
        world = ClusterSnapshot(
            self._clock.now(),
            self._rules,
            nodes=None if nodes is None else _by_name(nodes),
            leases=None if leases is None else _by_name(leases),
            claims=None if claims is None else _by_key(claims),
            budgets=await self._list(POD_DISRUPTION_BUDGETS, namespace) or (),
            replica_sets=_by_uid(await self._list(REPLICA_SETS, namespace) or ()),
            events=_by_regarded(await self._list(EVENTS, namespace, most=_MOST_EVENTS) or ()),
            pods=pods,
        )
        return self._finished(await self._with_attachments(world))

    async def _pods(self, namespace: str) -> list[Object]:
        """Of those that are well only what their node may mean for them is kept: there may be very many."""
        found: list[Object] = []
        try:
            async for page in self._client.pages(PODS, namespace, options=ListOptions(limit=_PAGE)):
                found += [_lean(pod) for pod in page.items]
        except ExpiredError:
            found = [_lean(pod) for pod in (await self._client.list_all(PODS, namespace)).items]
        return found

    # Parts of it

    async def _with_node(self, world: ClusterSnapshot, name: str) -> ClusterSnapshot:
        nodes = await self._one(NODES, name)
        lease = await self._one(LEASES, name, _LEASE_NAMESPACE)
        return replace(world, nodes=nodes, leases=lease)

    async def _with_all_nodes(self, world: ClusterSnapshot, pod: Object) -> ClusterSnapshot:
        nodes = await self._list(NODES)
        world = replace(world, nodes=None if nodes is None else _by_name(nodes))
        if "free ports" in text(condition(pod, "PodScheduled"), "message"):
            world = replace(world, pods=await self._list(PODS) or ())
        return world

    async def _with_attachments(self, world: ClusterSnapshot) -> ClusterSnapshot:
        """Only where an event tells that a volume could not be attached: in a cluster that is well nobody asks."""
        every = (event for events in world.events.values() for event in events)
        if not any(text(event, "reason") == "FailedAttachVolume" for event in every):
            return world
        volumes = {text(spec(claim), "volumeName") for claim in (world.claims or {}).values()}
        every_one = await self._list(_ATTACHMENTS) or []
        found = [each for each in every_one if _attached(each) in volumes]
        nodes = dict(world.nodes or {})
        for name in {text(spec(each), "nodeName") for each in found} - {"", *nodes}:
            nodes |= await self._one(NODES, name) or {}
        return replace(world, attachments=found, nodes=None if world.nodes is None else nodes)

    async def _claims_of(self, pod: Object) -> Mapping[tuple[str, str], Object] | None:
        namespace = text(metadata(pod), "namespace")
        found: dict[tuple[str, str], Object] = {}
        for name in claims_of(pod):
            claim = await self._one(PERSISTENT_VOLUME_CLAIMS, name, namespace)
            if claim is None:
                return None
            found |= {(namespace, key): value for key, value in claim.items()}
        return found

    async def _owner_of(self, pod: Object, ref: Ref) -> Mapping[str, Object]:
        """By its UID, if it is of this kind."""
        owner = controller_of(pod)
        if text(owner, "kind") != ref.kind:
            return {}
        found = await self._one(ref, text(owner, "name"), text(metadata(pod), "namespace"))
        return _by_uid((found or {}).values())

    async def _went_with(self, pod: Object) -> str:
        """What was deleted, so that the pod went as well; "" where nothing was, or nobody may know."""
        namespace, owner = text(metadata(pod), "namespace"), controller_of(pod)
        home = await self._one(NAMESPACES, namespace)
        if any(is_terminating(each) for each in (home or {}).values()):
            return "by the deletion of its namespace"
        ref = _OWNERS.get(text(owner, "kind"))
        if ref is None:
            return ""
        found = await self._one(ref, text(owner, "name"), namespace)
        if found is None or text(owner, "uid") in {
            text(metadata(each), "uid") for each in found.values() if not is_terminating(each)
        }:
            return ""
        return f"by the garbage collector: its {text(owner, 'kind')} {text(owner, 'name')} was deleted"

    async def _replicas_set_by(self, world: ClusterSnapshot, pod: Object) -> str:
        """Who last set how many pods its workload has, from the managers of its fields; "" where nobody knows."""
        kind, name = world.workload_of(pod) or ("", "")
        ref = _SCALED.get(kind)
        if ref is None:
            return ""
        found = await self._one(ref, name, text(metadata(pod), "namespace")) or {}
        for workload in found.values():
            manager, at = field_setter(metadata(workload), "f:spec", "f:replicas")
            if manager:
                return f"the replicas of {kind} {name} were last set by {manager} at {at}"
        return ""

    async def _events_of(self, namespace: str, obj: Object) -> Mapping[str, Sequence[Object]]:
        """Asked for by name, since a node's own events carry its name as UID, and some events of pods none."""
        found, uid = metadata(obj), text(metadata(obj), "uid")
        selection = ListOptions(field_selector=f"involvedObject.name={text(found, 'name')}")
        events = await self._list(EVENTS, namespace, options=selection, most=_MOST_EVENTS) or []
        ours = [each for each in events if is_its_own(each, obj)]
        return {uid: sorted(ours, key=_time)}

    # How it is read

    async def _one(self, ref: Ref, name: str, namespace: str = "") -> Mapping[str, Object] | None:
        """One object by its name, nothing where there is none; None where that cannot be known."""

        async def get() -> Mapping[str, Object]:
            try:
                found: Object = await self._client.get(ref, name, namespace)
            except NotFoundError:
                return {}
            return {name: found}

        return await self._tried(ref, namespace, get)

    async def _list(
        self, ref: Ref, namespace: str = "", *, options: ListOptions | None = None, most: int = 0
    ) -> list[Object] | None:
        async def read() -> list[Object]:
            if not most:
                return (await self._client.list_all(ref, namespace, options=options)).items
            found: list[Object] = []
            selection = replace(options or ListOptions(), limit=_PAGE)
            async for page in self._client.pages(ref, namespace, options=selection):
                found += page.items
                if len(found) >= most:
                    self._unread[f"{ref} after the first {most}"] = None
                    break
            return found

        try:
            return await self._tried(ref, namespace, read)
        except NotFoundError:
            # A server that has no such resource has nothing of it, either.
            return []

    async def _tried(self, ref: Ref, namespace: str, read: Callable[[], Awaitable[T]]) -> T | None:
        try:
            return await read()
        except NotFoundError:
            raise
        except ApiError as error:
            where = f" in {namespace}" if namespace else ""
            self._unread[f"{ref}{where} ({error.code} {error.reason})"] = None
            return None

    def _finished(self, world: ClusterSnapshot) -> ClusterSnapshot:
        return replace(world, unread=tuple(self._unread))


def _lean(pod: Object) -> Object:
    if is_terminating(pod) or text(condition(pod, "Ready"), "status") != "True":
        return pod
    found, wanted = metadata(pod), ("name", "namespace", "uid", "labels", "annotations", "ownerReferences")
    return {
        "metadata": {key: found[key] for key in wanted if key in found},
        "spec": {key: spec(pod)[key] for key in ("nodeName", "tolerations") if key in spec(pod)},
        "status": {"phase": status(pod).get("phase"), "conditions": [condition(pod, "Ready")]},
    }


def _attached(attachment: Object) -> str:
    return text(spec(attachment).get("source") or {}, "persistentVolumeName")


def _by_name(objects: Iterable[Object]) -> dict[str, Object]:
    return {text(metadata(each), "name"): each for each in objects}


def _by_key(objects: Iterable[Object]) -> dict[tuple[str, str], Object]:
    return {(text(metadata(each), "namespace"), text(metadata(each), "name")): each for each in objects}


def _by_uid(objects: Iterable[Object]) -> dict[str, Object]:
    return {text(metadata(each), "uid"): each for each in objects}


def _regarded(event: Object) -> str:
    return text(event.get("involvedObject") or {}, "uid")


def _by_regarded(events: Iterable[Object]) -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = {}
    for event in sorted(events, key=_time):
        found.setdefault(_regarded(event), []).append(event)
    return found


def _time(event: Object) -> float:
    at = updated(event)
    return 0.0 if at is None else at.timestamp()
