"""The cluster that a node has joined, and the check that the API server still serves it.

An API server whose data was lost or replaced has no pods for this node, and a kubelet that trusted it would kill
everything. So the kubelet remembers the UIDs of objects that identify the cluster, and compares them before it uses a
list of pods or registers its node again. The namespace kube-system is decisive if it may be read. With kube-apiserver a
node may not read it, but the service default/kubernetes; that service and the node's own object can be recreated, but a
cluster in which both have other UIDs is another cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import msgspec

from podlife.client import NODES, Client, Ref
from podlife.client.refs import NAMESPACES, SERVICES
from podlife.errors import ConfigError, ForbiddenError, NotFoundError
from podlife.pki import write_private

CLUSTER_FILE = "cluster.json"
_NODE = "node"
_KUBE_SYSTEM = "namespace/kube-system"
_CLUSTER_WIDE: Mapping[str, tuple[Ref, str, str]] = {
    _KUBE_SYSTEM: (NAMESPACES, "kube-system", ""),
    "service/default/kubernetes": (SERVICES, "kubernetes", "default"),
}

Uids = Mapping[str, str]


class AnotherClusterError(ConfigError):
    """The API server serves a cluster other than the one the node has joined."""


def is_another_cluster(known: Uids, found: Uids) -> bool:
    """`found` has "" for an object that does not exist, and no entry for one that may not be read."""
    compared = [each for each in (*_CLUSTER_WIDE, _NODE) if each in known and each in found]
    if _KUBE_SYSTEM in compared:
        return known[_KUBE_SYSTEM] != found[_KUBE_SYSTEM]
    is_known = any(each in known for each in _CLUSTER_WIDE)
    return is_known and bool(compared) and all(known[each] != found[each] for each in compared)


class ClusterMembership:
    """Without a `file` the cluster is remembered until the process exits; without a `node` its object is not compared.
    Removing the file accepts the current cluster."""

    def __init__(self, client: Client, node: str = "", file: Path | None = None) -> None:
        self._client = client
        self._node = node
        self._file = file
        self._kept: Uids = {}
        # The number of checks begun, and the last one that passed.
        self._begun = self._passed = 0
        self._lock = asyncio.Lock()

    async def check(self) -> None:
        """Raises `AnotherClusterError`, and the client's errors. Concurrent callers share a check: one that began after
        their call is enough for all."""
        begun = self._begun
        async with self._lock:
            if self._passed <= begun:
                self._begun += 1
                await self._compare()
                self._passed = self._begun

    async def _compare(self) -> None:
        known = self._load()
        found: dict[str, str] = {}
        own = {_NODE: (NODES, self._node, "")} if self._node else {}
        for name, (ref, object_name, namespace) in {**_CLUSTER_WIDE, **own}.items():
            uid = await self._uid_of(ref, object_name, namespace)
            if uid is None:
                continue
            found[name] = uid
            if uid and known.get(name) == uid:
                break
        if is_another_cluster(known, found):
            raise AnotherClusterError(self._mismatch(known, found))
        self._save(known, {**known, **{name: uid for name, uid in found.items() if uid}})

    def note_node(self, uid: str) -> None:
        """Record the UID under which the node is registered in the checked cluster."""
        if self._node:
            known = self._load()
            self._save(known, {**known, _NODE: uid})

    async def _uid_of(self, ref: Ref, name: str, namespace: str) -> str | None:
        try:
            return str((await self._client.get(ref, name, namespace))["metadata"]["uid"])
        except ForbiddenError:
            return None
        except NotFoundError as error:
            if not error.is_about(name):
                raise
            return ""

    def _load(self) -> Uids:
        if self._file is None:
            return self._kept
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"cannot read which cluster was joined from {self._file}: {error}; remove the file to accept "
                "the cluster that is there now"
            ) from None

    def _save(self, before: Uids, now: Uids) -> None:
        if now == before:
            return
        self._kept = now
        if self._file is None:
            return
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(self._file, msgspec.json.encode(now))
        except OSError as error:
            raise ConfigError(f"cannot write {self._file}: {error.strerror}") from None

    def _mismatch(self, known: Uids, found: Uids) -> str:
        name = next(each for each in found if each in known)
        accept = "restart the agent" if self._file is None else f"remove {self._file}"
        return (
            f"the API server serves another cluster than the one joined before ({name} has UID "
            f"{found[name] or 'none'}, expected {known[name]}): running pods are left alone; restore the server's "
            f"data, or {accept} to accept this cluster, which ends the pods that it does not know"
        )
