"""A simulation's scenario: how pods behave, what images do, when nodes are away.

Data, and the random choices made from it. The seed of a choice is the scenario's seed with the name of its subject: the
same scenario for the same names gives the same run, whatever other pods there are and in whatever order they come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from random import Random

from podlife.api.selectors import EVERYTHING, LabelSelector


@dataclass(frozen=True, slots=True)
class Wait:
    """A length of time: at least `seconds`, and up to `jitter_seconds` more."""

    seconds: float = 0.0
    jitter_seconds: float = 0.0

    def drawn(self, chance: Random) -> float:
        return self.seconds + (chance.uniform(0.0, self.jitter_seconds) if self.jitter_seconds else 0.0)


@dataclass(frozen=True, slots=True)
class Crash:
    """`times` is how many of its runs end so; None is all of them."""

    after: Wait = Wait()
    code: int = 1
    times: int | None = None
    is_out_of_memory: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """How a container ends when it is asked to; without `after` it has to be killed."""

    after: Wait | None = Wait()
    code: int = 143


@dataclass(frozen=True, slots=True)
class Conduct:
    """How a container behaves; what is None or empty is as ever: it starts at once, and runs until it is stopped."""

    start: Wait | None = None
    crash: Crash | None = None
    finish: Wait | None = None
    stop: Stop | None = None
    create_error: str = ""
    start_error: str = ""
    output: tuple[str, ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True)
class PodRule:
    """Of the pods that it selects, a share behaves so: all containers of them, or those named."""

    namespaces: tuple[str, ...] = ()
    labels: LabelSelector = EVERYTHING
    containers: tuple[str, ...] = ()
    share: float = 1.0
    conduct: Conduct = Conduct()


@dataclass(frozen=True, slots=True)
class ImageRule:
    """`name` is a pattern: * is any text. With an `error` the image cannot be pulled."""

    name: str
    pull: Wait = Wait()
    error: str = ""


@dataclass(frozen=True, slots=True)
class NodeOutage:
    """A node is away from one moment to another, in seconds of the simulation; None is for good. A machine that is
    off has lost what ran on it; otherwise only its kubelet is silent."""

    begin: float
    end: float | None
    is_machine: bool = False


@dataclass(frozen=True, slots=True)
class NodeRule:
    """A share of the nodes that its patterns name is away: once (`at`), or again and again (`every`, on average)."""

    names: tuple[str, ...] = ()
    share: float = 1.0
    at: Wait | None = None
    every_seconds: float | None = None
    lasts: Wait | None = None
    is_machine: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """Of rules that fit, the first counts."""

    seed: int = 0
    pods: tuple[PodRule, ...] = ()
    images: tuple[ImageRule, ...] = ()
    nodes: tuple[NodeRule, ...] = field(default=())

    def chance(self, *about: object) -> Random:
        """Chance that belongs to these words alone."""
        return Random(f"{self.seed}/{'/'.join(map(str, about))}")  # noqa: S311 - plays a part, guards nothing

    def image(self, name: str) -> ImageRule | None:
        return next((rule for rule in self.images if fnmatchcase(name, rule.name)), None)

    def outages(self, node: str) -> Iterator[NodeOutage]:
        """When this node is away, one after the other; without end where it goes away again and again."""
        for number, rule in enumerate(self.nodes):
            chance = self.chance("node", number, node)
            is_named = not rule.names or any(fnmatchcase(node, name) for name in rule.names)
            if is_named and chance.random() < rule.share:
                yield from _outages(rule, chance)
                return


def _outages(rule: NodeRule, chance: Random) -> Iterator[NodeOutage]:
    if rule.at is not None:
        begin = rule.at.drawn(chance)
        lasts = None if rule.lasts is None else rule.lasts.drawn(chance)
        yield NodeOutage(begin, None if lasts is None else begin + lasts, rule.is_machine)
        return
    now = 0.0
    while rule.every_seconds:
        begin = now + chance.expovariate(1.0 / rule.every_seconds)
        if rule.lasts is None:
            yield NodeOutage(begin, None, rule.is_machine)
            return
        now = begin + rule.lasts.drawn(chance)
        yield NodeOutage(begin, now, rule.is_machine)
