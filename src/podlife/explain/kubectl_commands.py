"""Commands that unblock an object, ready to be typed.

Destructive commands carry the UID: a pod recreated under the same name is not affected. kubectl has no flag for that,
so a deletion is sent with its options as a raw request.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from podlife.api.codec import Object
from podlife.explain.cluster_snapshot import OUT_OF_SERVICE
from podlife.explain.objects import metadata, text

_TO_FILL_IN = re.compile(r"[\w./=:-]*<[A-Z-]+>")
_TEMPLATED = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")


def kubectl(*words: str) -> str:
    return " ".join(["kubectl", *map(_quoted, words)])


def create(obj: Object) -> str:
    """What is wanted and not there; its namespace stands in it."""
    return f"echo {shlex.quote(_json(obj))} | kubectl create -f -"


def delete(pod: Object, grace_seconds: int | None = None) -> str:
    body: Object = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
    found = metadata(pod)
    body["preconditions"] = {"uid": text(found, "uid")}
    path = f"/api/v1/namespaces/{text(found, 'namespace')}/pods/{text(found, 'name')}"
    return _raw("delete", path, body)


def bind(pod: Object, node: str) -> str:
    found = metadata(pod)
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": text(found, "name"), "uid": text(found, "uid")},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    path = f"/api/v1/namespaces/{text(found, 'namespace')}/pods/{text(found, 'name')}/binding"
    return _raw("create", path, binding)


def _raw(verb: str, path: str, body: Object) -> str:
    return f"echo {shlex.quote(_json(body))} | kubectl {verb} --raw {shlex.quote(path)} -f -"


def patch(kind: str, obj: Object, body: Any, *, type_: str = "strategic", subresource: str = "") -> str:
    words = ["patch", kind, text(metadata(obj), "name"), *namespace_flag(obj)]
    words += [f"--subresource={subresource}"] if subresource else []
    return kubectl(*words, f"--type={type_}", "-p", _json(body))


def remove_from_list(kind: str, obj: Object, path: str, place: int, value: Any) -> str:
    """Only if the object is still this one, and the value still in its place."""
    where = f"{path}/{place}"
    steps = [
        {"op": "test", "path": "/metadata/uid", "value": text(metadata(obj), "uid")},
        {"op": "test", "path": where, "value": value},
        {"op": "remove", "path": where},
    ]
    return patch(kind, obj, steps, type_="json")


def out_of_service(node: str) -> str:
    return kubectl("taint", "node", node, f"{OUT_OF_SERVICE}=nodeshutdown:NoExecute")


def remove_taint(node: str, taint: Object) -> str:
    return kubectl("taint", "node", node, f"{taint.get('key', '')}:{taint.get('effect', '')}-")


def set_image(pod: Object, container: str, workload: tuple[str, str] | None) -> str:
    target = workload_target(pod, workload)
    return kubectl("set", "image", target, f"{container}=<IMAGE>", *namespace_flag(pod))


def workload_target(pod: Object, workload: tuple[str, str] | None) -> str:
    """The workload where there is one whose pods can be changed by it: what is set in its pod alone does not last."""
    kind, name = workload or ("", "")
    return f"{kind.lower()}/{name}" if kind in _TEMPLATED else f"pod/{text(metadata(pod), 'name')}"


def namespace_flag(obj: Object) -> list[str]:
    namespace = text(metadata(obj), "namespace")
    return ["-n", namespace] if namespace else []


def _quoted(word: str) -> str:
    # What a person is to fill in stands bare: forgotten, it is a file that no shell finds, and nothing is run.
    return word if _TO_FILL_IN.fullmatch(word) else shlex.quote(word)


def _json(body: Any) -> str:
    return json.dumps(body, separators=(",", ":"))
