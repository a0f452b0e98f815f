"""Reads from the store which objects a node's pods need: the `NodeView` of authorization.

Only pods in the object's own namespace are examined, and only those whose bytes contain the node's name are decoded.
Nothing is cached, so what a node may read follows its pods without delay.
"""

from __future__ import annotations

from podlife.api.codec import Object, decode_object, encode
from podlife.apiserver.authz.pod_references import references
from podlife.apiserver.storage import Key, Store


class StoreNodeView:
    def __init__(self, store: Store) -> None:
        self._store = store

    def is_related(self, node_name: str, resource: str, namespace: str, name: str) -> bool:
        match resource:
            case "pods":
                pod = self._get(Key("pods", namespace, name))
                return pod is not None and _node_of(pod) == node_name
            case "persistentvolumes":
                claim = self._claim_of(name)
                return claim is not None and self.is_related(node_name, "persistentvolumeclaims", *claim)
            case "volumeattachments":
                attachment = self._get(Key("volumeattachments.storage.k8s.io", "", name))
                return attachment is not None and _node_of(attachment) == node_name
            case _:
                return self._is_referenced(node_name, resource, namespace, name)

    def _is_referenced(self, node_name: str, resource: str, namespace: str, name: str) -> bool:
        mark = b'"nodeName":' + encode(node_name)
        for record in self._store.list("pods", namespace):
            if mark in record.value:
                pod = decode_object(record.value)
                if _node_of(pod) == node_name and (resource, name) in references(pod):
                    return True
        return False

    def _claim_of(self, volume_name: str) -> tuple[str, str] | None:
        volume = self._get(Key("persistentvolumes", "", volume_name)) or {}
        claim = (volume.get("spec") or {}).get("claimRef")
        return (claim.get("namespace", ""), claim.get("name", "")) if claim else None

    def _get(self, key: Key) -> Object | None:
        record = self._store.get(key)
        return decode_object(record.value) if record else None


def _node_of(obj: Object) -> str:
    return str((obj.get("spec") or {}).get("nodeName", ""))
