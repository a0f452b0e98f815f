"""Informer event handlers: update the index and wake the collector when a pod may have become collectable."""

from __future__ import annotations

import asyncio
from typing import Protocol

from podlife.api.views import Node
from podlife.podgc.guards.controller_gate import ControllerGate
from podlife.podgc.index import PodIndex
from podlife.podgc.views import Namespace, Pod


class IndexOwner(Protocol):
    """The part of the collector that the handlers use."""

    index: PodIndex
    guards: ControllerGate

    def note(self, is_news: bool) -> None: ...

    def release(self, pod: Pod) -> None: ...

    def has_claimed(self, pod: Pod) -> bool: ...


class PodHandler:
    """Updates the index that was current when the handler was created; a new index gets a new handler."""

    def __init__(self, collector: IndexOwner) -> None:
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
            # Nothing left to do.
            collector.release(new)
        elif collector.has_claimed(new):
            # Usually our own patch or deletion: its worker evaluates what the index holds.
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
    def __init__(self, collector: IndexOwner) -> None:
        self._collector = collector

    def on_add(self, node: Node) -> None:
        self._collector.note(self._collector.index.put_node(node))

    def on_update(self, old: Node, new: Node) -> None:
        self._collector.note(self._collector.index.put_node(new))

    def on_delete(self, node: Node) -> None:
        self._collector.note(self._collector.index.remove_node(node, _now()))


class NamespaceHandler:
    def __init__(self, collector: IndexOwner) -> None:
        self._collector = collector

    def on_add(self, namespace: Namespace) -> None:
        self._put(namespace)

    def on_update(self, old: Namespace, new: Namespace) -> None:
        self._put(new)

    def on_delete(self, namespace: Namespace) -> None:
        self._collector.index.remove_namespace(namespace)
        self._collector.guards.note_annotations()

    def _put(self, namespace: Namespace) -> None:
        self._collector.guards.note_annotations()
        self._collector.note(self._collector.index.put_namespace(namespace))


def _now() -> float:
    return asyncio.get_running_loop().time()
