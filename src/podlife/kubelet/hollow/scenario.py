"""A simulation's scenario: how pods behave, how long images take to pull, when nodes are down.

Each random choice is seeded with the scenario's seed and the name of its subject. The same scenario and names therefore
give the same run, regardless of other pods and of the order in which they arrive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from random import Random

from podlife.api.selectors import EVERYTHING, LabelSelector


@dataclass(frozen=True, slots=True)
class Wait:
    """A duration: `seconds` plus up to `jitter_seconds`."""

    seconds: float = 0.0
    jitter_seconds: float = 0.0

    def drawn(self, chance: Random) -> float:
        return self.seconds + (chance.uniform(0.0, self.jitter_seconds) if self.jitter_seconds else 0.0)


@dataclass(frozen=True, slots=True)
class Crash:
    """The first `times` runs crash; None means all."""

    after: Wait = Wait()
    code: int = 1
    times: int | None = None
    is_out_of_memory: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """How a container exits on the stop signal; without `after` it has to be killed."""

    after: Wait | None = Wait()
    code: int = 143


@dataclass(frozen=True, slots=True)
class Conduct:
    """How a container behaves. By default it starts at once and runs until it is stopped."""

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
    """Applies `conduct` to a share of the selected pods: to all their containers, or the named ones."""

    namespaces: tuple[str, ...] = ()
    labels: LabelSelector = EVERYTHING
    containers: tuple[str, ...] = ()
    share: float = 1.0
    conduct: Conduct = Conduct()


@dataclass(frozen=True, slots=True)
class ImageRule:
    """`name` is a shell pattern. With an `error` the pull fails."""

    name: str
    pull: Wait = Wait()
    error: str = ""


@dataclass(frozen=True, slots=True)
class NodeOutage:
    """A node is down from `begin` to `end`, in seconds of the simulation; None means for good. With `is_machine` its
    containers are lost; otherwise only its kubelet is stopped."""

    begin: float
    end: float | None
    is_machine: bool = False


@dataclass(frozen=True, slots=True)
class NodeRule:
    """A share of the matching nodes is down: once (`at`), or repeatedly (`every_seconds`, on average)."""

    names: tuple[str, ...] = ()
    share: float = 1.0
    at: Wait | None = None
    every_seconds: float | None = None
    lasts: Wait | None = None
    is_machine: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """The first matching rule applies."""

    seed: int = 0
    pods: tuple[PodRule, ...] = ()
    images: tuple[ImageRule, ...] = ()
    nodes: tuple[NodeRule, ...] = field(default=())

    def chance(self, *about: object) -> Random:
        """A random generator for this subject alone."""
        return Random(f"{self.seed}/{'/'.join(map(str, about))}")  # noqa: S311 - a simulation, not security

    def image(self, name: str) -> ImageRule | None:
        return next((rule for rule in self.images if fnmatchcase(name, rule.name)), None)

    def outages(self, node: str) -> Iterator[NodeOutage]:
        """The outages of this node in order; an endless iterator if they repeat."""
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
