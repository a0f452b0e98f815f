"""`podlife gc policy test`: shows what a policy would do to the pods of a cluster or a file at a given time.

With pods from a file and a fixed time the result is reproducible and can be compared with an expected list, so that a
policy can be tested in CI. It never changes anything.
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

_MAX_BYTES = 1 << 30
# YAML is slow to parse.
_MAX_YAML_BYTES = 1 << 24
_KINDS = ("Pod", "Node", "Namespace")


@dataclass(frozen=True, slots=True)
class Trial:
    # A file; "" for the one of the flags.
    policy: str
    # Files; empty for the cluster.
    pods: Sequence[str]
    # None for the current time.
    now: datetime | None
    # A file; "" to show the plan.
    expected: str
    output: str


def run_trial(trial: Trial, options: PolicyOptions, connection: ConnectionOptions) -> int:
    """Print the plan, or its differences from the expected one; returns the exit code. Raises PodlifeError."""
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
    """The rule of each victim by NAMESPACE/NAME. Guards do not matter: they limit how many go at a time, not which."""
    return {victim.pod.key: victim.rule for victim in plan.victims}


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
                # An object may be in several files.
                found[kind][_key(item)] = item
    objects = {kind: list(items.values()) for kind, items in found.items()}
    if not objects["Pod"]:
        raise ConfigError(
            f"{', '.join(names)}: no pods found: expected the output of `kubectl get pods -A -o json`"
        )
    nodes, namespaces = objects["Node"] or None, objects["Namespace"] or None
    where = ", ".join(names)
    if nodes is None:
        _warn(f"no nodes in {where}: assuming that the nodes of all pods exist and are ready")
    if namespaces is None:
        _warn(f"no namespaces in {where}: assuming that those of all pods exist, without labels")
    try:
        index = index_of(settings, objects["Pod"], nodes, namespaces, now)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{', '.join(names)}: invalid object: {error}") from None
    return due_now(replace(plan_of(index, settings, 0.0), census=census_of(index)), settings)


def _key(item: Object) -> tuple[str, ...]:
    metadata = item.get("metadata")
    fields = metadata if isinstance(metadata, dict) else {}
    return tuple(str(fields.get(field) or "") for field in ("namespace", "name"))


def _warn(text: str) -> None:
    print(f"podlife: {text}", file=sys.stderr)


def _read(name: str) -> bytes:
    try:
        if name == "-":
            data = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > _MAX_BYTES:
        raise ConfigError(f"{name} exceeds the maximum size ({_MAX_BYTES >> 30} GiB)")
    return data


def _objects(data: bytes, name: str) -> Iterable[tuple[str, Object]]:
    """Kind and object of each item of a file, which is a list of any kind or one object."""
    top = _decode(data, name)
    if not isinstance(top, dict):
        raise ConfigError(f"{name} has no objects: expected the output of `kubectl get pods -A -o json`")
    if "items" not in top:
        return [(str(top.get("kind", "")), top)]
    items = top["items"] if isinstance(top["items"], list) else []
    # The items of a PodList have no kind.
    kind = str(top.get("kind", "")).removesuffix("List")
    return [(str(item.get("kind") or kind), item) for item in items if isinstance(item, dict)]


def _decode(data: bytes, name: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        why = str(error)
    if len(data) <= _MAX_YAML_BYTES and data.lstrip()[:1] not in (b"{", b"["):
        try:
            return msgspec.json.decode(yaml_to_json(data))
        except (ValueError, RecursionError) as error:
            why = str(error)
    raise ConfigError(f"{name} is neither JSON nor YAML: {' '.join(why.split())}") from None


def read_expected(name: str) -> dict[str, str]:
    """The rule by NAMESPACE/NAME, "" for any; raises ConfigError."""
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
            raise ConfigError(f"{place}: invalid line {line.strip()!r}: expected NAMESPACE/NAME [RULE]")
        if words[0] in expected:
            raise ConfigError(f"{place}: duplicate pod {words[0]}")
        expected[words[0]] = words[1] if len(words) == 2 else ""
    return expected


def _compare(found: dict[str, str], expected: dict[str, str], name: str) -> int:
    """Print the differences in diff format."""
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
            f"podlife: {counted(wrong)} differ from {name}: - is expected, + would be deleted",
            file=sys.stderr,
        )
        return 1
    print(f"As expected by {name}: {counted(len(found))} would be deleted.")
    return 0
