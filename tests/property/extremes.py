"""Objects at the ends of the ranges that Kubernetes' own types allow, made from the generated table of those types.

An extreme is a small valid object of a kind with one to three of its fields at an end: the least and the greatest
number, the first and the last moment, an empty and a long list, text that nobody expects. Which fields there are, and
of which types, is read from the schema; only words that components give a meaning of their own are listed here.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from podlife.api.schema import check
from podlife.api.schema.table import type_named, type_of_kind
from podlife.apiserver.resource import Resource
from tests.fuzz.objects import SEEDS, Object, Seed

_INT32 = (0, -1, 1, 2**31 - 1, -(2**31))
_INT64 = (*_INT32, 300_000_000_000, 2**63 - 1, -(2**63))
_TIMES = ("0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z")
_MICRO_TIMES = ("0001-01-01T00:00:00.000000Z", "1969-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z")
_QUANTITIES = ("0", "-1", "1n", "-1n", "9223372036854775807", "-9223372036854775808", "1Ei", "8E", "1e300")
_TEXTS = (
    "", "\0", "\u202e\u2066abc", "e\u0301\U0001f600\U0010ffff", "\u2028", "x" * 5000, "\U0001f600" * 300, "9" * 5000,
    "-1", "0", "2147483648", "9223372036854775808", "0-2147483647", "0-4294967295,7", "%s %(x)s {}", "../../..", "*",
    "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "1e300", "inf", "NaN", "NoExecute", "Exists",
    "Always", "Never", "Running", "Succeeded", "Failed", "Unknown", "True", "False", "n1", "odd-0", "missing",
    "default", "Recreate",
)  # fmt: skip
_ENDS: dict[str, tuple[Any, ...]] = {
    "i": _INT32,
    "l": _INT64,
    "T": _TIMES,
    "M": _MICRO_TIMES,
    "Q": _QUANTITIES,
    "I": (*_INT32, "0%", "-1%", "2147483647%", "99999999999999999999%", "", "x"),
    "b": (True, False),
    "s": _TEXTS,
    "y": ("", "AA==", "/w=="),
    "R": ({}, {"a": [[[]]]}, 2**63 - 1, "\0", None),
    "P": ({}, {"type": "object"}, {"a": [[[]]]}, None),
}
_MOST_ITEMS = 300
# Of numbers, moments and amounts each end is worth a try; of the others there are too many for that.
_COUNTABLE = "iIlTMQ"
# Kinds whose objects the components of a cluster decide by.
_READ = {
    "daemonsets", "deployments", "events", "jobs", "leases", "namespaces", "nodes", "poddisruptionbudgets", "pods",
    "replicasets", "statefulsets",
}  # fmt: skip
# What says which object it is, or belongs to the server alone.
_IDENTITY = {"kind", "apiVersion", "name", "namespace", "uid", "resourceVersion", "managedFields", "selfLink"}
# Read by components as numbers or moments, though they are text to the schema.
_READ_ANNOTATIONS = (
    "deployment.kubernetes.io/revision", "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas", "deprecated.deployment.rollback.to",
    "deprecated.daemonset.template.generation", "controller.kubernetes.io/pod-deletion-cost",
    "batch.kubernetes.io/job-completion-index", "batch.kubernetes.io/job-index-failure-count",
    "podlife.dev/keep-until", "kubernetes.io/config.mirror", "kubernetes.io/config.source", "kubernetes.io/config.hash",
    "kubernetes.io/config.seen", "podlife.dev/out-of-service",
)  # fmt: skip


@dataclass(frozen=True)
class Leaf:
    """A field of a kind: the way to it (a list is entered at its first item), and its type in the schema's letters."""

    path: tuple[str, ...]
    type: str

    def __str__(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True)
class Extreme:
    """An object, and what is extreme about it."""

    resource: Resource
    object: Object
    changes: tuple[tuple[Leaf, Any], ...]

    @property
    def is_outermost(self) -> bool:
        """Whether it is a field at the top of an object that components read, and not just zero or one. What all kinds
        have in common is told by pods."""
        is_read = self.resource.plural in _READ
        if self.resource.plural != "pods" and any(leaf.path[0] == "metadata" for leaf, _ in self.changes):
            return False
        return is_read and all(
            len(leaf.path) <= 2 and end not in (0, 1, -1, "0") for leaf, end in self.changes
        )

    @property
    def told(self) -> str:
        return ", ".join(f"{leaf} = {str(end)[:40]!r}" for leaf, end in self.changes)

    def __repr__(self) -> str:
        return f"{self.resource.key} {self.object['metadata']['name']}: {self.told}"


@cache
def leaves_of(resource: Resource) -> tuple[Leaf, ...]:
    """Everything in an object of the kind that has an end: its scalars, lists and maps."""
    kind = type_of_kind(resource.api_version, resource.kind)
    assert kind is not None
    return tuple(_leaves(kind.key, (), ()))


def _leaves(key: str, path: tuple[str, ...], above: tuple[str, ...]) -> Iterator[Leaf]:
    if key in above:
        return
    for name, field in type_named(key).fields.items():
        here = (*path, name)
        if name in _IDENTITY and path in ((), ("metadata",)):
            continue
        if here != ("metadata",):
            yield Leaf(here, field.type)
        inner = field.type.lstrip("[{")
        if inner[0] == "@" and field.type.count("{") == 0:
            yield from _leaves(inner[1:], here, (*above, key))


def ends_of(leaf: Leaf) -> tuple[Any, ...]:
    match leaf.type[0]:
        case "[":
            item = _inside(leaf.type[1:])
            return [], [item], [item] * _MOST_ITEMS
        case "{":
            inner = _inside(leaf.type[1:])
            return {}, {"": inner}, {f"a{number}": inner for number in range(_MOST_ITEMS)}
        case "@":
            return ({},)
    return _ENDS[leaf.type]


def _inside(kind: str) -> Any:
    match kind[0]:
        case "[":
            return []
        case "{" | "@":
            return {}
    return _ENDS[kind][-1]


def _countable(leaf: Leaf) -> bool:
    return leaf.type.lstrip("[{") in _COUNTABLE and leaf.type[0] not in "[{"


def every_extreme(seed: Seed) -> Iterator[Extreme]:
    """Each countable field of a kind at each of its ends, one at a time; those of pod templates are tried with pods."""
    leaves = [
        leaf for leaf in leaves_of(seed.resource) if _countable(leaf) and "template" not in leaf.path[:-1]
    ]
    for number, change in enumerate((leaf, end) for leaf in leaves for end in ends_of(leaf)):
        made = made_extreme(seed, f"odd-{number}", (change,))
        if made is not None:
            yield made


# Most components work on pods, and workloads make more of them.
_WEIGHTS = {"pods": 12, "nodes": 4, "leases.coordination.k8s.io": 3, "jobs.batch": 3}
_BY_WEIGHT = [seed for seed in SEEDS for _ in range(_WEIGHTS.get(seed.resource.key, 1))]


def draw_extreme(random: Random) -> Extreme | None:
    """One of any kind, with up to three fields at their ends."""
    seed = random.choice(_BY_WEIGHT)
    leaves = leaves_of(seed.resource)
    numbers = [leaf for leaf in leaves if _countable(leaf)]
    changes: list[tuple[Leaf, Any]] = []
    for _ in range(random.randint(1, 3)):
        leaf = random.choice(random.choice((numbers, leaves)))
        changes.append((leaf, random.choice(ends_of(leaf))))
    is_of_node = seed.resource.plural in ("nodes", "leases")
    name = f"odd-{random.randrange(10 if is_of_node else 10_000)}"
    made = made_extreme(seed, name, tuple(changes))
    if made is not None and random.random() < 0.5:
        names = random.sample(_READ_ANNOTATIONS, random.randint(0, 3))
        annotations = {each: random.choice(_TEXTS) for each in names}
        made.object["metadata"].setdefault("annotations", {}).update(annotations)
    return made


def made_extreme(seed: Seed, name: str, changes: tuple[tuple[Leaf, Any], ...]) -> Extreme | None:
    """None where the schema itself does not hold what was made."""
    row = seed.resource
    obj = copy.deepcopy(seed.object(name))
    for leaf, end in changes:
        _put(obj, row, leaf, copy.deepcopy(end))
    try:
        check(row.api_version, row.kind, obj)
    except ValueError:
        return None
    return Extreme(row, obj, changes)


def _put(obj: Object, row: Resource, leaf: Leaf, end: Any) -> None:
    """Set the field, and make what it stands in where that is not there."""
    kind = type_of_kind(row.api_version, row.kind)
    assert kind is not None
    here = obj
    for name in leaf.path[:-1]:
        field = kind.fields[name]
        kind = type_named(field.type.lstrip("[{")[1:])
        inner = here.get(name)
        if field.type[0] == "[":
            if not isinstance(inner, list) or not inner or not isinstance(inner[0], dict):
                inner = here[name] = [{}]
            here = inner[0]
        else:
            if not isinstance(inner, dict):
                inner = here[name] = {}
            here = inner
    here[leaf.path[-1]] = end
