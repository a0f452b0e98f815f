"""From the informers' events to the index, and word to the collector where something may have become collectable."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from podlife.api.views import Node
from podlife.podgc.views import Namespace, Pod

if TYPE_CHECKING:
    from podlife.podgc.collector import Collector

__all__ = ["NamespaceHandler", "NodeHandler", "PodHandler"]


class PodHandler:
    """Feeds the index that there is when it is made: when another takes its place, the pods are read anew for that."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._index = collector.index

    def on_add(self, pod: Pod) -> None:
        if self._is_current:
            self._collector.note(self._index.add_pod(pod, _now()))

    def on_update(self, old: Pod, new: Pod) -> None:
        collector = self._collector
        if not self._is_current:
            return
        is_news = collector.index.update_pod(old, new, _now())
        if collector.index.is_settled(new):
            # It leaves its place among the victims to the next.
            collector.release(new)
        elif collector.has_claimed(new):
            # Our own marking or deletion, mostly: its worker decides on what the index holds.
            return
        collector.note(is_news)

    def on_delete(self, pod: Pod) -> None:
        if self._is_current:
            self._index.remove_pod(pod, _now())
            self._collector.release(pod)

    @property
    def _is_current(self) -> bool:
        return self._collector.index is self._index


class NodeHandler:
    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def on_add(self, node: Node) -> None:
        self._collector.note(self._collector.index.put_node(node))

    def on_update(self, old: Node, new: Node) -> None:
        self._collector.note(self._collector.index.put_node(new))

    def on_delete(self, node: Node) -> None:
        self._collector.note(self._collector.index.remove_node(node, _now()))


class NamespaceHandler:
    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def on_add(self, namespace: Namespace) -> None:
        self._put(namespace)

    def on_update(self, old: Namespace, new: Namespace) -> None:
        self._put(new)

    def on_delete(self, namespace: Namespace) -> None:
        self._collector.index.remove_namespace(namespace)
        self._collector.guards.note_marks()

    def _put(self, namespace: Namespace) -> None:
        self._collector.guards.note_marks()
        self._collector.note(self._collector.index.put_namespace(namespace))


def _now() -> float:
    return asyncio.get_running_loop().time()
