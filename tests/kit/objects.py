"""API objects, and conversion to the views of components."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from podlife.api.codec import Object, format_time

V = TypeVar("V")


def container(name: str = "main", /, **fields: Any) -> Object:
    return {"name": name, "image": "registry.example/app:1", **fields}


def pod(
    name: str = "web",
    /,
    *containers: Object,
    metadata: Object | None = None,
    status: Object | None = None,
    **spec: Any,
) -> Object:
    """With one default container unless some are passed; other keywords go into its spec."""
    obj: Object = {
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"containers": list(containers) or [container()], **spec},
    }
    return obj if status is None else {**obj, "status": status}


def stored(obj: Object, namespace: str = "default", **metadata: Any) -> Object:
    """As returned by a server: with its namespace and a UID, by default `uid-NAME`."""
    own = {"namespace": namespace, "uid": f"uid-{obj['metadata']['name']}", **obj["metadata"], **metadata}
    return {**obj, "metadata": own}


def node(
    name: str = "n1", /, *, metadata: Object | None = None, status: Object | None = None, **spec: Any
) -> Object:
    return {"metadata": {"name": name, **(metadata or {})}, "spec": spec, "status": status or {}}


def condition(type_: str, status: str = "True", since: datetime | None = None, **fields: Any) -> Object:
    """Of a pod or a node."""
    changed = {} if since is None else {"lastTransitionTime": format_time(since)}
    return {"type": type_, "status": status, **changed, **fields}


def owner(kind: str, name: str, *, api_version: str = "apps/v1", uid: str = "") -> Object:
    """A controller reference."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid or f"uid-{name}",
        "controller": True,
    }


def ended(exit_code: int = 0, at: datetime | None = None, *, name: str = "main", **fields: Any) -> Object:
    """The status of a container that has ended."""
    finished = {} if at is None else {"finishedAt": format_time(at)}
    return {"name": name, "state": {"terminated": {"exitCode": exit_code, **finished, **fields}}}


def read(obj: Object, view: type[V]) -> V:
    """Convert to a component's view."""
    return msgspec.convert(obj, view, strict=False)


def ago(now: datetime, **how_long: float) -> str:
    """An API timestamp before `now`: `ago(NOW, minutes=5)`."""
    return format_time(now - timedelta(**how_long))
