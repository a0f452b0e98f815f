"""The informers of a collector, and whether their caches can be trusted.

Namespaces are watched only if a policy or guards need them. Pods are decoded with the view of the policy in force: when
the policy is replaced they are listed again, and the caches are stale until that is done. Handlers of the previous pod
informer receive no more events.
"""

from __future__ import annotations

import asyncio

from podlife.api.views import Node
from podlife.client import NAMESPACES, NODES, PODS, Client
from podlife.informer import Handler, Informer
from podlife.podgc.effective_settings import pod_view
from podlife.podgc.index import PodIndex
from podlife.podgc.settings import Settings
from podlife.podgc.views import Namespace, Pod


class Caches:
    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._pods = Informer(client, PODS, view=pod_view(settings))
        self._nodes = Informer(client, NODES, view=Node)
        is_asked = settings.asks_namespaces
        self._namespaces = Informer(client, NAMESPACES, view=Namespace) if is_asked else None
        self._is_replaced = asyncio.Event()
        self._has_replaced = False

    @property
    def is_fit(self) -> bool:
        """Whether all caches are synced and live."""
        return all(informer.has_synced and informer.is_live for informer in self._informers)

    @property
    def has_namespaces(self) -> bool:
        return self._namespaces is not None

    @property
    def interruptions(self) -> int:
        """How often a watch was interrupted so far."""
        return sum(informer.stats.interruptions for informer in self._informers)

    @property
    def trouble(self) -> str:
        """Why they are not fit, if known."""
        found = next((str(each.trouble) for each in self._informers if each.trouble is not None), "")
        is_new = self._has_replaced and not self._pods.has_synced
        return found or ("listing pods for the new policy" if is_new else "")

    async def wait_for_sync(self, *, seconds: float) -> bool:
        """Wait for each informer, at most so long; returns whether all have synced."""
        for informer in self._informers:
            if not await informer.wait_for_sync(seconds=seconds):
                return False
        return True

    def follow(
        self,
        group: asyncio.TaskGroup,
        pods: Handler[Pod],
        nodes: Handler[Node],
        namespaces: Handler[Namespace],
    ) -> None:
        """Run the informers with these handlers, in the task group."""
        self._pods.add_handler(pods)
        self._nodes.add_handler(nodes)
        group.create_task(self._follow_pods(), name="podgc-pods")
        group.create_task(self._nodes.run(), name="podgc-nodes")
        if self._namespaces is not None:
            self._namespaces.add_handler(namespaces)
            group.create_task(self._namespaces.run(), name="podgc-namespaces")

    def replace_pods(self, settings: Settings, handler: Handler[Pod]) -> None:
        """List the pods again, with the view of these settings, for this handler."""
        self._pods = Informer(self._client, PODS, view=pod_view(settings))
        self._pods.add_handler(handler)
        self._is_replaced.set()
        self._has_replaced = True

    def fill(self, index: PodIndex) -> None:
        """Add the known nodes and namespaces to an index."""
        for node in self._nodes.cache.list():
            index.put_node(node)
        for namespace in self._namespaces.cache.list() if self._namespaces is not None else ():
            index.put_namespace(namespace)

    @property
    def _informers(self) -> tuple[Informer[Pod] | Informer[Node] | Informer[Namespace], ...]:
        # Pods first: a pod's node and namespace existed before the pod.
        return tuple(each for each in (self._pods, self._nodes, self._namespaces) if each is not None)

    async def _follow_pods(self) -> None:
        while True:
            self._is_replaced.clear()
            try:
                async with asyncio.TaskGroup() as group:
                    following = group.create_task(self._pods.run(), name="podgc-pods-now")
                    await self._is_replaced.wait()
                    following.cancel()
            except BaseExceptionGroup as failures:
                raise failures.exceptions[0] from None
