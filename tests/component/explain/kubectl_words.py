"""What a printed command would do if kubectl ran it, done by a client: the forms that explanations use, no others."""

from __future__ import annotations

import json
import shlex
from typing import Any

from podlife.client import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SECRETS,
    STATEFUL_SETS,
    Client,
    PatchType,
    Ref,
)

Object = dict[str, Any]

_KINDS: dict[str, Ref] = {
    "configmap": CONFIG_MAPS,
    "deployment": DEPLOYMENTS,
    "namespace": NAMESPACES,
    "node": NODES,
    "persistentvolume": PERSISTENT_VOLUMES,
    "persistentvolumeclaim": PERSISTENT_VOLUME_CLAIMS,
    "pod": PODS,
    "secret": SECRETS,
    "statefulset": STATEFUL_SETS,
}
_TYPES = {"json": PatchType.JSON, "merge": PatchType.MERGE, "strategic": PatchType.STRATEGIC}


def filled(command: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        command = command.replace(f"<{name}>", value)
    assert "<" not in command, f"something is left to fill in: {command}"
    return command


async def type_in(client: Client, command: str) -> None:
    words, body = shlex.split(command), None
    if "|" in words:
        body = json.loads(words[1])
        words = words[words.index("|") + 1 :]
    assert words[0] == "kubectl", command
    flags, rest = _flags(words[1:])
    do = _VERBS[rest[0]]
    await do(client, rest[1:], flags, body)


def _flags(words: list[str]) -> tuple[dict[str, list[str]], list[str]]:
    flags: dict[str, list[str]] = {}
    rest: list[str] = []
    iterator = iter(words)
    for word in iterator:
        if word in ("-n", "-p", "-c", "-f", "--raw"):
            flags.setdefault(word.lstrip("-"), []).append(next(iterator))
        elif word.startswith("--"):
            name, _, value = word[2:].partition("=")
            flags.setdefault(name, []).append(value)
        else:
            rest.append(word)
    return flags, rest


def _namespace(flags: dict[str, list[str]]) -> str:
    return flags.get("n", [""])[0]


async def _delete(client: Client, rest: list[str], flags: dict[str, list[str]], body: Any) -> None:
    assert body["preconditions"]["uid"], "what destroys names the UID"
    await client.request("DELETE", flags["raw"][0], body=body)


async def _create(client: Client, rest: list[str], flags: dict[str, list[str]], body: Any) -> None:
    if "raw" in flags:
        await client.request("POST", flags["raw"][0], body=body)
    elif body is not None:
        ref = _KINDS[body["kind"].lower()]
        await client.create(ref, body, body["metadata"].get("namespace", ""))
    else:
        data = dict(literal.split("=", 1) for literal in flags.get("from-literal", []))
        field = "data" if rest[0] == "configmap" else "stringData"
        await client.create(_KINDS[rest[0]], {"metadata": {"name": rest[-1]}, field: data}, _namespace(flags))


async def _patch(client: Client, rest: list[str], flags: dict[str, list[str]], body: Any) -> None:
    kind, name = rest
    sub = flags.get("subresource", [""])[0]
    patch, type_ = json.loads(flags["p"][0]), _TYPES[flags["type"][0]]
    await client.patch(_KINDS[kind], name, patch, _namespace(flags), type=type_, subresource=sub)


async def _taint(client: Client, rest: list[str], flags: dict[str, list[str]], body: Any) -> None:
    _, name, taint = rest
    node: Object = await client.get(NODES, name)
    taints = list(node["spec"].get("taints") or [])
    left, effect = taint.removesuffix("-").rsplit(":", 1)
    key, _, value = left.partition("=")
    if taint.endswith("-"):
        kept = [each for each in taints if (each["key"], each["effect"]) != (key, effect)]
        assert kept != taints, f"no such taint: {taint}"
    else:
        kept = [*taints, {"key": key, "value": value, "effect": effect}]
    await client.patch(NODES, name, {"spec": {"taints": kept}})


async def _label(client: Client, rest: list[str], flags: dict[str, list[str]], body: Any) -> None:
    kind, name, *labels = rest
    pairs = (each.partition("=") for each in labels)
    changes = {key if sign else key.removesuffix("-"): value if sign else None for key, sign, value in pairs}
    await client.patch(_KINDS[kind], name, {"metadata": {"labels": changes}}, _namespace(flags))


async def _cordon(client: Client, rest: list[str], flags: dict[str, list[str]], body: Any) -> None:
    await client.patch(NODES, rest[0], {"spec": {"unschedulable": True}})


async def _uncordon(client: Client, rest: list[str], flags: dict[str, list[str]], body: Any) -> None:
    await client.patch(NODES, rest[0], {"spec": {"unschedulable": None}})


async def _annotate(client: Client, rest: list[str], flags: dict[str, list[str]], body: Any) -> None:
    kind, name, said = rest
    key, _, value = said.partition("=")
    change = {key: value} if value else {key.removesuffix("-"): None}
    patch = {"metadata": {"annotations": change}}
    await client.patch(_KINDS[kind], name, patch, _namespace(flags))


async def _set(client: Client, rest: list[str], flags: dict[str, list[str]], body: Any) -> None:
    what, target = rest[:2]
    kind, name = target.split("/")
    if what == "image":
        container, image = rest[2].split("=", 1)
        change: Object = {"image": image}
    else:
        container = flags["c"][0]
        fields = {field: flags[field][0] for field in ("requests", "limits") if field in flags}
        change = {
            "resources": {field: dict([value.split("=", 1)]) for field, value in fields.items()},
        }
    found: Object = await client.get(_KINDS[kind], name, _namespace(flags))
    spec = found["spec"] if kind == "pod" else found["spec"]["template"]["spec"]
    inits = [each["name"] for each in spec.get("initContainers") or ()]
    field = "initContainers" if container in inits else "containers"
    patch: Object = {"spec": {field: [{"name": container, **change}]}}
    if kind != "pod":
        patch = {"spec": {"template": patch}}
    await client.patch(_KINDS[kind], name, patch, _namespace(flags), type=PatchType.STRATEGIC)


_VERBS = {
    "annotate": _annotate,
    "cordon": _cordon,
    "create": _create,
    "delete": _delete,
    "label": _label,
    "patch": _patch,
    "set": _set,
    "taint": _taint,
    "uncordon": _uncordon,
}
