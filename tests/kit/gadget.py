"""A custom resource whose class uses everything that `podlife.api.crd` can express."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

import msgspec
from msgspec import Meta

from podlife.api.crd import (
    ATOMIC_LIST,
    ATOMIC_MAP,
    EMBEDDED,
    PRESERVE_UNKNOWN,
    SET_LIST,
    CustomResource,
    IntOrString,
    Quantity,
    map_list,
    rule,
)
from podlife.api.views import Metadata


class Mode(enum.Enum):
    """How it runs."""

    FAST = "fast"
    SAFE = "safe"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Port(msgspec.Struct, rename="camel"):
    name: Annotated[str, Meta(max_length=15)]
    number: Annotated[int, Meta(ge=1, le=65535)]
    target_port: IntOrString = 80
    protocol: Literal["TCP", "UDP"] = "TCP"


@dataclass
class Owner:
    name: str
    mail: str = ""


class Options(TypedDict, total=False):
    verbose: bool
    depth: Annotated[int, Meta(ge=0)]


class Open(msgspec.Struct):
    """Keeps what it does not know."""

    known: int = 0


class Limits(msgspec.Struct, rename="camel"):
    cpu: Quantity | None = None
    memory: Quantity = "64Mi"


class GadgetSpec(msgspec.Struct, rename="camel"):
    """What the gadget should be."""

    image: Annotated[
        str, Meta(min_length=1, max_length=64, pattern="^[a-z0-9./:-]+$", description="What it runs.")
    ]
    replicas: Annotated[int, Meta(ge=0, le=100)] = 1
    ratio: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    step: Annotated[int, Meta(multiple_of=5)] | None = None
    paused: bool = False
    mode: Mode = Mode.SAFE
    level: Level = Level.LOW
    strategy: Literal["Recreate", "RollingUpdate"] = "RollingUpdate"
    priority: Literal["high", "low"] | None = None
    surge: IntOrString = "25%"
    limits: Limits = msgspec.field(default_factory=Limits)
    labels: Annotated[dict[str, str], Meta(max_length=5)] = {}
    weights: dict[str, Annotated[int, Meta(ge=0)]] = {}
    ports: Annotated[list[Port], Meta(max_length=8), map_list("name")] = []
    tags: Annotated[set[Annotated[str, Meta(max_length=20)]], Meta(max_length=10)] = set()
    zones: Annotated[tuple[Annotated[str, Meta(max_length=20)], ...], Meta(max_length=4), SET_LIST] = ()
    arguments: Annotated[list[str], ATOMIC_LIST] = []
    selector: Annotated[dict[str, str], ATOMIC_MAP] = {}
    not_before: Annotated[datetime, Meta(tz=True)] | None = None
    birthday: date | None = None
    token: UUID | None = None
    owner: Owner | None = None
    options: Options | None = None
    open: Annotated[Open, PRESERVE_UNKNOWN] | None = None
    anything: Any = None
    free: dict[str, Any] = {}
    template: Annotated[dict[str, Any], EMBEDDED] | None = None
    window: Annotated[
        list[int],
        Meta(max_length=2),
        rule("self.size() != 2 || self[0] < self[1]", "must begin before it ends"),
    ] = []


class Condition(msgspec.Struct, rename="camel"):
    type: str
    status: Literal["True", "False", "Unknown"]
    message: str = ""


class GadgetStatus(msgspec.Struct, rename="camel"):
    replicas: int = 0
    selector: str = ""
    conditions: Annotated[list[Condition], map_list("type")] = []


@CustomResource(
    "example.com",
    "v1",
    "gadgets",
    short_names=("gd",),
    categories=("all", "toys"),
    columns={
        "Image": ".spec.image",
        "Replicas": {"jsonPath": ".spec.replicas", "description": "How many there should be."},
        "Paused": {"jsonPath": ".spec.paused", "priority": 1},
        "Ready": ".status.conditions[?(@.type=='Ready')].status",
        "Age": ".metadata.creationTimestamp",
    },
    selectable=(".spec.image",),
    scale=(".spec.replicas", ".status.replicas", ".status.selector"),
    rules=(rule("!self.spec.paused || self.spec.replicas == 0", "a paused gadget has no replicas"),),
)
class Gadget(msgspec.Struct):
    """A gadget."""

    metadata: Metadata
    spec: GadgetSpec
    status: GadgetStatus = msgspec.field(default_factory=GadgetStatus)
