"""The same expression in podlife and in cel-go with Kubernetes' environment: values, errors, types and costs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from podlife.api import cel
from podlife.api.cel.library.networks import CIDR, IP

FOLDER = Path(__file__).parent / "cel"
ANSWERS = FOLDER / "answers.jsonl"

SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "s": {"type": "string", "maxLength": 10},
        "l": {"type": "array", "items": {"type": "string"}},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "o": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}},
        "ls": {
            "type": "array",
            "maxItems": 5,
            "items": {"type": "object", "properties": {"k": {"type": "string"}}},
        },
        "f": {"type": "number"},
        "b": {"type": "boolean"},
        "t": {"type": "string", "format": "date-time"},
        "d": {"type": "string", "format": "duration"},
        "day": {"type": "string", "format": "date"},
        "raw": {"type": "string", "format": "byte", "maxLength": 20},
        "p": {"x-kubernetes-int-or-string": True},
        "e": {"type": "string", "enum": ["red", "green"]},
        "set": {
            "type": "array",
            "x-kubernetes-list-type": "set",
            "maxItems": 10,
            "items": {"type": "string"},
        },
        "map": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {
                "type": "object",
                "required": ["k"],
                "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
            },
        },
        "nul": {"type": "string", "nullable": True},
        "namespace": {"type": "string"},
        "a-b": {"type": "string"},
        "a.b/c__d": {"type": "string"},
        "mm": {
            "type": "object",
            "maxProperties": 4,
            "additionalProperties": {"type": "array", "maxItems": 3, "items": {"type": "integer"}},
        },
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "emb": {"type": "object", "x-kubernetes-embedded-resource": True},
    },
}
SELF = {
    "n": 3,
    "s": "hello",
    "l": ["a", "bb"],
    "m": {"a": 1, "b": 2},
    "o": {"x": 1},
    "ls": [{"k": "q"}, {"k": "r"}],
    "f": 2,
    "b": True,
    "t": "2023-07-14T10:30:45.5Z",
    "d": "1h30m",
    "day": "2023-07-14",
    "raw": "aGVsbG8=",
    "p": "50%",
    "e": "red",
    "set": ["a", "b"],
    "map": [{"k": "a", "v": 1}, {"k": "b", "v": 2}],
    "nul": None,
    "namespace": "ns",
    "a-b": "dash",
    "a.b/c__d": "odd",
    "mm": {"x": [1, 2]},
    "any": {"z": 1},
    "emb": {"kind": "Pod", "metadata": {"name": "p"}},
}
DYNAMIC = {"d": {"i": 1, "s": "a", "l": [1, 2], "m": {"x": 1}, "n": None, "f": 1.5, "b": True}}


def cases() -> list[dict[str, Any]]:
    """The expressions of both tables, one on each line: with `self` of a schema, and with `d` of no type."""
    typed = (FOLDER / "schema.cel").read_text(encoding="utf-8").splitlines()
    dynamic = (FOLDER / "dynamic.cel").read_text(encoding="utf-8").splitlines()
    return [
        *({"expr": expression, "schema": SCHEMA, "self": SELF} for expression in typed),
        *({"expr": expression, "dyn": DYNAMIC} for expression in dynamic),
    ]


def recorded() -> list[dict[str, Any]]:
    """Upstream's answers to `cases`, as `tests/real/cel` found them."""
    return [json.loads(line) for line in ANSWERS.read_text(encoding="utf-8").splitlines()]


def upstream(program: Path, cases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    lines = "\n".join(json.dumps(case) for case in cases)
    done = subprocess.run([program], input=lines, check=True, capture_output=True, text=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()]


def podlife(case: dict[str, Any]) -> dict[str, Any]:
    """The answer in the form of upstream's program."""
    variables: dict[str, cel.CelType] = dict.fromkeys(case.get("dyn", {}), cel.DYN)
    values: dict[str, Any] = dict(case.get("dyn", {}))
    if "schema" in case:
        made = cel.schema_type(case["schema"], is_resource=case.get("root", False), name="selfType")
        assert made is not None
        variables["self"], values["self"] = made, case["self"]
    try:
        program = cel.compile(case["expr"], cel.Environment(variables))
    except cel.CelError as error:
        text = str(error)
        return {"compileError": text} if text.startswith("ERROR") else {"error": f"instantiation: {text}"}
    estimated = program.estimated_cost()
    answer: dict[str, Any] = {
        "type": str(program.type),
        "estimatedMin": estimated.least,
        "estimatedMax": estimated.most,
        "value": None,
    }
    try:
        done = program.evaluate(values, case.get("limit", 10**9))
    except cel.CelError as error:
        return {**answer, "error": str(error)}
    return {**answer, "value": shown(done.value), "cost": done.cost}


def shown(value: Any) -> Any:
    match value:
        case bool() | None | str():
            return value
        case cel.Uint():
            return {"uint": int(value)}
        case int():
            return value
        case float():
            return {
                "double": cel.compile("string(x)", cel.Environment({"x": cel.DYN}))
                .evaluate({"x": value})
                .value
            }
        case bytes():
            return {"bytes": value.hex()}
        case cel.Duration():
            return {"duration": value.nanos}
        case cel.Timestamp():
            return {
                "timestamp": cel.compile("string(x)", cel.Environment({"x": cel.DYN}))
                .evaluate({"x": value})
                .value
            }
        case cel.Optional():
            return {"optional": [shown(value.value)] if value.has_value else None}
        case cel.CelType():
            return {"type": value.name}
        case list():
            return [shown(item) for item in value]
        case dict():
            entries = [[shown(key), shown(item)] for key, item in value.items()]
            return {"map": sorted(entries, key=lambda entry: _go_text(entry[0]))}
        case IP() | CIDR():
            return {"object": value.type_name}
    return {"object": value.type_name}


def _go_text(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def difference(theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What differs. After an error only its text counts, and after one at the start nothing else is known."""
    if (
        "compileError" in theirs
        or "compileError" in ours
        or theirs.get("error", "").startswith("instantiation")
    ):
        names = ["compileError", "error"]
    else:
        names = ["type", "estimatedMin", "estimatedMax", "value", "error"]
        names += [] if "error" in theirs else ["cost"]
    return {name: (theirs.get(name), ours.get(name)) for name in names if theirs.get(name) != ours.get(name)}
