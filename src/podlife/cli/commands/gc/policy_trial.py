"""`podlife gc policy test`: what a policy would do, to the pods of a cluster or of a file, at a time that can be given.

With pods from a file and a time it depends on nothing else, and can be held against a list of what is expected: so a
policy can be tested wherever its file is kept. Nothing is ever changed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from podlife.api.yaml_documents import yaml_to_json
from podlife.cli.commands.gc.options import PolicyOptions
from podlife.cli.commands.gc.output import Shown, format_plan
from podlife.cli.commands.gc.policy_show import read_given
from podlife.cli.connection import ConnectionOptions, connected, load_connection
from podlife.cli.output import counted
from podlife.clock import ManualClock, SystemClock
from podlife.daemons import event_loop
from podlife.errors import ConfigError
from podlife.podgc import GcSession, Settings
from podlife.podgc.effective_settings import index_of
from podlife.podgc.guards.budget import Moment
from podlife.podgc.guards.plan_filter import census_of, hold_back
from podlife.podgc.plan import Plan
from podlife.podgc.planner import due_now
from podlife.podgc.planner import plan as plan_of
from podlife.podgc.policy.parse import PolicyError
from podlife.podgc.session import candidates

Object = dict[str, Any]

_MOST_BYTES = 1 << 30
# What is read slowly is not read for ever.
_MOST_YAML_BYTES = 1 << 24
_KINDS = ("Pod", "Node", "Namespace")


@dataclass(frozen=True, slots=True)
class Trial:
    # A file; "" is that of the flags.
    policy: str
    # Files; none is the cluster.
    pods: Sequence[str]
    # None is the time of this machine.
    now: datetime | None
    # A file; "" is to show the plan.
    expected: str
    output: str


def run_trial(trial: Trial, options: PolicyOptions, connection: ConnectionOptions) -> int:
    """Print the plan, or how it differs from what was expected; gives the exit code. Raises PodlifeError."""
    try:
        policy = read_given(trial.policy) if trial.policy else options.policy_file()
    except PolicyError as error:
        print(error, file=sys.stderr)
        return 1
    expected = read_expected(trial.expected) if trial.expected else None
    now = trial.now or SystemClock().now()
    settings = replace(options.flags(), policy=policy)
    plan = _from_files(trial.pods, settings, now) if trial.pods else _from_cluster(connection, settings, now)
    if expected is not None:
        return _compare(_lines(plan), expected, trial.expected)
    if trial.output == "list":
        sys.stdout.writelines(f"{pod} {rule}\n" for pod, rule in sorted(_lines(plan).items()))
    else:
        held = hold_back(plan, settings, Moment(0.0, now))
        sys.stdout.write(format_plan(held, trial.output, now, Shown(settings)))
    return 0


def _lines(plan: Plan) -> dict[str, str]:
    """The rule behind each victim, by NAMESPACE/NAME; guards say how many of them go at a time, and not which."""
    return {victim.pod.key: victim.rule for victim in plan.victims}


# Where pods come from


def _from_cluster(options: ConnectionOptions, settings: Settings, now: datetime) -> Plan:
    connection = load_connection(options)

    async def plan() -> Plan:
        async with connected(options, connection) as client:
            return await candidates(GcSession(client, settings, clock=ManualClock(now)))

    return event_loop.run(plan())


def _from_files(names: Sequence[str], settings: Settings, now: datetime) -> Plan:
    found: dict[str, dict[tuple[str, ...], Object]] = {kind: {} for kind in _KINDS}
    for name in names:
        for kind, item in _objects(_read(name), name):
            if kind in found:
                # One that is in two files is one.
                found[kind][_key(item)] = item
    objects = {kind: list(items.values()) for kind, items in found.items()}
    if not objects["Pod"]:
        raise ConfigError(
            f"{', '.join(names)}: there are no pods: write what `kubectl get pods -A -o json` prints"
        )
    nodes, namespaces = objects["Node"] or None, objects["Namespace"] or None
    where = ", ".join(names)
    if nodes is None:
        _tell(f"there are no nodes in {where}: those that pods name are taken to be there, and ready")
    if namespaces is None:
        _tell(
            f"there are no namespaces in {where}: those that pods name are taken to be there, without labels"
        )
    try:
        index = index_of(settings, objects["Pod"], nodes, namespaces, now)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"{', '.join(names)}: one of the objects is not as a server gives it: {error}"
        ) from None
    return due_now(replace(plan_of(index, settings, 0.0), census=census_of(index)), settings)


def _key(item: Object) -> tuple[str, ...]:
    metadata = item.get("metadata")
    fields = metadata if isinstance(metadata, dict) else {}
    return tuple(str(fields.get(field) or "") for field in ("namespace", "name"))


def _tell(text: str) -> None:
    print(f"podlife: {text}", file=sys.stderr)


def _read(name: str) -> bytes:
    try:
        if name == "-":
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > _MOST_BYTES:
        raise ConfigError(f"{name} is larger than {_MOST_BYTES >> 30} GiB: give fewer pods")
    return data


def _objects(data: bytes, name: str) -> Iterable[tuple[str, Object]]:
    """Kind and object of each in the file: a list of any kind, or one object."""
    top = _decode(data, name)
    if not isinstance(top, dict):
        raise ConfigError(f"{name} has no objects: write what `kubectl get pods -A -o json` prints")
    if "items" not in top:
        return [(str(top.get("kind", "")), top)]
    items = top["items"] if isinstance(top["items"], list) else []
    # The items of a PodList do not say what they are.
    kind = str(top.get("kind", "")).removesuffix("List")
    return [(str(item.get("kind") or kind), item) for item in items if isinstance(item, dict)]


def _decode(data: bytes, name: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        why = str(error)
    if len(data) <= _MOST_YAML_BYTES and data.lstrip()[:1] not in (b"{", b"["):
        try:
            return msgspec.json.decode(yaml_to_json(data))
        except (ValueError, RecursionError) as error:
            why = str(error)
    raise ConfigError(f"{name} is neither JSON nor YAML: {' '.join(why.split())}") from None


# What was expected


def read_expected(name: str) -> dict[str, str]:
    """The rule by NAMESPACE/NAME, "" where any is meant; raises ConfigError."""
    expected: dict[str, str] = {}
    try:
        text = _read(name).decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{name} is not UTF-8 text") from None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        place = f"{name}:{number}:1"
        if len(words) > 2 or words[0].count("/") != 1:
            raise ConfigError(
                f"{place}: invalid line {line.strip()!r}: expected NAMESPACE/NAME, and a RULE where it matters"
            )
        if words[0] in expected:
            raise ConfigError(f"{place}: {words[0]} is there twice: leave one of them out")
        expected[words[0]] = words[1] if len(words) == 2 else ""
    return expected


def _compare(found: dict[str, str], expected: dict[str, str], name: str) -> int:
    """Print what is not as it was expected to be, as lines of a difference."""
    wrong = 0
    for pod in sorted(found.keys() | expected.keys()):
        rule, wanted = found.get(pod), expected.get(pod)
        if rule == wanted or (rule is not None and wanted == ""):
            continue
        wrong += 1
        if wanted is not None:
            print(f"- {pod} {wanted}".rstrip())
        if rule is not None:
            print(f"+ {pod} {rule}".rstrip())
    if wrong:
        print(
            f"podlife: {counted(wrong)} not as {name} says: - is expected, + is what would go",
            file=sys.stderr,
        )
        return 1
    print(f"As {name} says: {counted(len(found))} would go.")
    return 0
