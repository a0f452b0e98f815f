"""The table of scenarios: `@scenario("replicaset")` registers an async function on a `World`.

What must not be compared is declared with its reason, by kind and path (`*` is every item of a list):

    @scenario("job", ignoring={"Job.status.startTime": "why", "Event.BackoffLimitExceeded": "why"})

`Kind.path` takes a field away, `Event.Reason` the events of that reason, `Event` all of them.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.workloads import scenarios
from tests.workloads.snapshot import Snapshot
from tests.workloads.world import World

Play = Callable[[World], Awaitable[None]]

GOLDEN = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Scenario:
    workload: str
    name: str
    play: Play
    ignoring: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.workload}-{self.name}"

    def namespace(self, suffix: str = "") -> str:
        """A namespace that is nobody else's."""
        tail = f"-{suffix}" if suffix else ""
        return f"{self.workload}-{self.name}{tail}".replace("_", "-")


_REGISTERED: dict[str, Scenario] = {}


def scenario(workload: str, *, ignoring: Mapping[str, str] | None = None) -> Callable[[Play], Play]:
    def register(play: Play) -> Play:
        made = Scenario(workload, play.__name__, play, ignoring or {})
        if str(made) in _REGISTERED:
            raise ValueError(f"there are two scenarios {made}")
        if len(made.namespace("a")) > 55:
            raise ValueError(f"the name of {made} is too long: nodes are called after it")
        _REGISTERED[str(made)] = made
        return play

    return register


@cache
def all_scenarios() -> tuple[Scenario, ...]:
    return tuple(
        each for module in pkgutil.iter_modules(scenarios.__path__) for each in scenarios_of(module.name)
    )


@cache
def scenarios_of(workload: str) -> tuple[Scenario, ...]:
    """In the order of their names. Raises ModuleNotFoundError where there are none."""
    importlib.import_module(f"{scenarios.__name__}.{workload}")
    return tuple(each for _, each in sorted(_REGISTERED.items()) if each.workload == workload)


def golden_file(workload: str) -> Path:
    return GOLDEN / f"{workload}.json"


@cache
def _goldens(workload: str) -> Mapping[str, Snapshot]:
    path = golden_file(workload)
    read: Mapping[str, Snapshot] = json.loads(path.read_text()) if path.exists() else {}
    return read


def golden(scenario: Scenario) -> Snapshot:
    """What kube-controller-manager has left of it; raises LookupError where nobody has recorded that."""
    try:
        return _goldens(scenario.workload)[scenario.name]
    except KeyError:
        raise LookupError(
            f"record it: python -m tests.workloads.record {scenario.workload} {scenario.name}"
        ) from None
