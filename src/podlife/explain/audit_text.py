"""Who deleted a pod, in words: a line for `explain`, and a phrase for a table. Pure."""

from __future__ import annotations

from podlife.explain.audit_deletion import Deletion, Ending
from podlife.explain.audit_log import UNNAMED_CONTROLLER, WORKLOADS, AuditedRequest

_CONTROLLERS = {
    "pod-garbage-collector": "pod GC",
    "pod-garbage-collector-controller": "pod GC",
    "generic-garbage-collector": "the garbage collector",
    "garbage-collector-controller": "the garbage collector",
    "taint-eviction-controller": "taint eviction",
    "ttl-after-finished-controller": "the TTL of its Job",
}


def sentence(found: Deletion) -> str:
    """With all that the log knows of who asked: `at … by …`."""
    at = f"at {found.request.at:%Y-%m-%d %H:%M:%SZ}"
    match found.ending:
        case Ending.EVICTED:
            tool = ", as kubectl drain does" if _tool(found.request) == "kubectl" else ""
            return f"{at} by {who_asked(found.request)}: eviction{tool}"
        case Ending.OWNER_DELETED if found.origin is not None:
            return f"{at} by the garbage collector: its {' '.join(found.owner)} was deleted {_origin(found.origin)}"
        case Ending.NAMESPACE_DELETED if found.origin is not None:
            return f"{at} with its namespace, which was deleted {_origin(found.origin)}"
        case Ending.CONTROLLER:
            return f"{at} by {_controller(found)}{_trigger(found)}"
        case Ending.NODE:
            return f"{at} by the agent of {found.request.node}, after it had ended; nobody else asked for it"
        case _:
            return f"{at} by {who_asked(found.request)}: {found.request.verb}"


def phrase(found: Deletion) -> str:
    """In a few words."""
    match found.ending:
        case Ending.EVICTED:
            tool = _tool(found.request)
            return f"evicted by {_short(found.request, 'kubectl drain' if tool == 'kubectl' else tool)}"
        case Ending.OWNER_DELETED if found.origin is not None:
            return f"{_short(found.origin)} deleted its {' '.join(found.owner)}"
        case Ending.NAMESPACE_DELETED if found.origin is not None:
            return f"{_short(found.origin)} deleted its namespace"
        case Ending.CONTROLLER:
            if (origin := found.origin) is None:
                return f"{'collected' if found.is_pod_gc else 'removed'} by {_controller(found)}"
            if origin.resource == "nodes":
                return f"{_short(origin)} tainted its node {origin.name}"
            verb = "scaled" if origin.subresource == "scale" else "changed"
            return f"{_short(origin)} {verb} its {WORKLOADS[origin.resource]} {origin.name}"
        case Ending.NODE:
            return "removed by its node after it had ended"
        case _:
            return f"deleted by {_short(found.request)}"


def _controller(found: Deletion) -> str:
    name = found.request.controller
    if name in _CONTROLLERS:
        return _CONTROLLERS[name]
    return " ".join(found.owner) if found.owner[1] else name


def _trigger(found: Deletion) -> str:
    origin = found.origin
    if origin is None:
        return ""
    target = "/".join(each for each in (origin.resource, origin.name, origin.subresource) if each)
    return f", after {origin.verb} of {target} {_origin(origin)}"


def _origin(request: AuditedRequest) -> str:
    return f"at {request.at:%H:%M:%SZ} by {who_asked(request)}"


def who_asked(request: AuditedRequest) -> str:
    """`jane (developers), kubectl/v1.36.3 from 10.0.0.7`: who was authenticated, and what its client calls itself,
    which proves nothing. Groups that everybody is in tell nothing."""
    if request.controller and request.controller != UNNAMED_CONTROLLER:
        return request.controller
    groups = [each for each in request.groups if each not in ("system:authenticated", "system:nodes")]
    groups = [each for each in groups if not each.startswith("system:serviceaccounts")]
    told = request.user or "an unknown user"
    if groups:
        told += f" ({', '.join(groups[:3])})"
    if request.on_behalf_of:
        told += f" acting as {request.on_behalf_of}"
    if request.agent:
        told += f", {request.agent.partition(' ')[0]}"
    return f"{told} from {request.source_ip}" if request.source_ip else told


def _tool(request: AuditedRequest) -> str:
    return request.agent.partition("/")[0].rpartition(" ")[2]


def _short(request: AuditedRequest, tool: str | None = None) -> str:
    user = request.controller or request.user or "an unknown user"
    if request.on_behalf_of:
        user += f" as {request.on_behalf_of}"
    tool = _tool(request) if tool is None else tool
    return f"{user} ({tool})" if tool and not request.controller else user
