"""What to put where it does not belong: hypothesis strategies for values, objects and bytes.

An object is changed along the types of Kubernetes itself (the generated table), so that most of what comes out
gets past the schema check and meets the defaults, the validation and the printers behind it.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import strategies as st

from podlife.api.schema.table import Type, type_named, type_of_kind
from tests.fuzz.objects import SEEDS, Object, Seed

_WORDS = (
    "", "a", "main", "web", "it", "default", "kube-system", "A", "a.b", "a-b", "a_b", "-a", "a/b", "a//b", "..",
    "/", "/data", "*", "-1", "0", "1", "80", "65536", "10%", "-5%", "101%", "1Gi", "500m", "metadata.name",
    "spec.nodeName", "limits.cpu", "10.0.0.1", "::1", "10.0.0.0/24", "300.1.1.1", "example.com/x",
    "kubernetes.io/hostname", "kubernetes.io/arch", "2030-01-01T00:00:00Z", "* * * * *", "@daily", "@every 1h",
    "TZ=UTC * * * * *", "CRON_TZ=UTC * * * * *", "*/0 * * * *", "61 * * * *", "1-5/2,7 0 1 1 *", "UTC", "Local",
    "Always", "Never", "OnFailure", "IfNotPresent", "TCP", "UDP", "SCTP", "Exists", "Equal", "In", "NotIn",
    "DoesNotExist", "Gt", "Lt", "NoSchedule", "PreferNoSchedule", "NoExecute", "RollingUpdate", "Recreate",
    "OnDelete", "Indexed", "NonIndexed", "ClusterIP", "LoadBalancer", "ExternalName", "NodePort", "None",
    "Directory", "ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "Block", "Filesystem", "Allow", "Forbid",
    "Replace", "Orphan", "Foreground", "Background", "Retain", "Delete", "Recycle", "Opaque",
    "kubernetes.io/service-account-token", "kubernetes.io/tls", "kubernetes.io/dockerconfigjson", "Pod", "Node",
    "Running", "Succeeded", "Failed", "Pending", "Unknown", "True", "False", "Ready", "ClusterFirst", "Default",
    "File", "FallbackToLogsOnError", "Local", "Cluster", "ClientIP", "IPv4", "IPv6", "SingleStack", "DualStack",
    "RequireDualStack", "PreferDualStack", "linux", "windows", "SYS_ADMIN", "RuntimeDefault", "Localhost",
    "Unconfined", "HTTP", "HTTPS", "SIGTERM", "RestartContainer", "NotRequired", "OrderedReady", "Parallel",
    "kubernetes", "foregroundDeletion", "orphan", "example.com/finalizer", "Terminating", "Active", "IfHealthyBudget",
    "AlwaysAllow", "FailJob", "Ignore", "Count", "FailIndex", "Complete", "DisruptionTarget", "TerminatingOrFailed",
)  # fmt: skip
_STRANGE = (
    "\u0000", "\u0007", "\r\nX-Injected: yes", "\u2028", "\ufeff", "\U0001f600", "é", "ǆ", "İ", "٣", "²", "a\u0301",
    "x" * 64, "x" * 254, "x" * 5000, "$(A)", "${A}", "{{.}}", "'", '"', "\\", "%00", "%", "a b", " a", "a ", "\t",
    "\n", "0x10", "1e3", "1_000", "+1", "NaN", "Infinity", "-0", "null", "true",
)  # fmt: skip
_QUANTITIES = (
    "0", "1", "-1", "1Gi", "500m", "0.5", "1e3", "1E", "1Ei", "1n", "1u", "100000000000000000000E", "0.0000000001",
    "1e-400", "1e400", "", "+1", ".5", "1.", "1 Gi", "١", "9223372036854775807", "9223372036854775808",
)  # fmt: skip
_TIMES = (
    "2030-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2030-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00", "2030-06-30T23:59:60Z", "2030-01-01T00:00:00.999999999Z",
    "2030-01-01", "", "now", "2030-02-30T00:00:00Z", "2030-01-01t00:00:00z", "1969-12-31T23:59:59Z",
)  # fmt: skip
_NUMBERS = (0, 1, -1, 2, 3, 10, 30, 100, 300, 4096, 65535, 65536, 2**31 - 1, -(2**31), 2**31)
_LARGE = (*_NUMBERS, 2**32, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30, 9223372036, 253402300800)

strange_texts = st.one_of(st.sampled_from(_STRANGE), st.text(max_size=12))
_texts = st.one_of(st.sampled_from(_WORDS), st.sampled_from(_WORDS), strange_texts)
_scalars = st.one_of(
    st.none(), st.booleans(), st.sampled_from(_LARGE), st.floats(), _texts, st.builds(list), st.builds(dict)
)
anything: st.SearchStrategy[Any] = st.recursive(
    _scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_texts, inner, max_size=3)),
    max_leaves=6,
)

seeds = st.sampled_from(SEEDS)

_BY_LETTER: dict[str, st.SearchStrategy[Any]] = {
    "s": _texts,
    "b": st.booleans(),
    "i": st.sampled_from(_NUMBERS[:-1]),
    "l": st.sampled_from(_LARGE[:-6]),
    "y": st.sampled_from(["", "YQ==", "YWI=", "e30=", "!", "YQ", "/w=="]),
    "T": st.sampled_from(_TIMES),
    "M": st.sampled_from(_TIMES),
    "Q": st.sampled_from(_QUANTITIES),
    "I": st.one_of(st.sampled_from(_NUMBERS[:-1]), _texts),
    "R": anything,
    "P": anything,
}
_DEPTH = 4


def values_of(kind: str, depth: int = _DEPTH) -> st.SearchStrategy[Any]:
    """Values that the table's type would take, most of which no strategy expects."""
    match kind[0]:
        case "[":
            return st.lists(values_of(kind[1:], depth - 1), max_size=3 if depth > 0 else 0)
        case "{":
            inner = values_of(kind[1:], depth - 1)
            return st.dictionaries(_texts, inner, max_size=3 if depth > 0 else 0)
        case "@":
            return _structs(kind[1:], depth)
    return _BY_LETTER[kind]


@st.composite
def _structs(draw: st.DrawFn, key: str, depth: int) -> Object:
    fields = type_named(key).fields
    if depth <= 0 or not fields:
        return {}
    names = draw(st.lists(st.sampled_from(sorted(fields)), max_size=4, unique=True))
    return {name: draw(values_of(fields[name].type, depth - 1)) for name in names}


@st.composite
def mutated_objects(draw: st.DrawFn, seed: Seed, name: str = "it", most: int = 4) -> Object:
    """The seed's object, changed in a few places; now and then what is changed has the wrong type."""
    row = seed.resource
    obj = copy.deepcopy(seed.object(name))
    for _ in range(draw(st.integers(1, most))):
        mutate(draw, obj, row.api_version, row.kind)
    return obj


def mutate(draw: st.DrawFn, obj: Object, api_version: str, kind: str) -> None:
    """Change one thing in an object of that kind."""
    known = type_of_kind(api_version, kind)
    assert known is not None
    _mutate(draw, obj, known)


def _mutate(draw: st.DrawFn, obj: Object, kind: Type) -> None:
    """Walk down from here along the types, and change something on the way."""
    known = sorted(set(kind.fields) - {"kind", "apiVersion"})
    if not known:
        return
    present = sorted(set(obj) & set(known))
    name = draw(st.sampled_from(present if present and draw(st.integers(0, 2)) > 0 else known))
    field = kind.fields[name]
    value = obj.get(name)
    go_on = draw(st.integers(0, 9))
    if field.type[0] == "@" and isinstance(value, dict) and go_on > 1:
        _mutate(draw, value, type_named(field.type[1:]))
    elif field.type[:2] == "[@" and isinstance(value, list) and value and go_on > 2:
        item = draw(st.sampled_from(value))
        if isinstance(item, dict):
            _mutate(draw, item, type_named(field.type[2:]))
        if go_on == 3:
            value.append(copy.deepcopy(item))
    elif go_on == 0:
        obj[name] = draw(anything)
    elif go_on == 1:
        obj.pop(name, None)
    else:
        obj[name] = draw(values_of(field.type))


@st.composite
def broken_bytes(draw: st.DrawFn, data: bytes) -> bytes:
    """The bytes with something cut out, put in, doubled or turned."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 12)))
        what = draw(st.integers(0, 4))
        if what == 0:
            data = data[:at] + data[end:]
        elif what == 1:
            data = data[:at] + draw(st.binary(max_size=6)) + data[at:]
        elif what == 2:
            data = data[:at] + data[at:end] * 2 + data[end:]
        elif what == 3:
            data = data[:at]
        else:
            pieces = (
                b"null",
                b"NaN",
                b"1e999",
                b'"\\ud800"',
                b"\xff",
                b"[" * 3000,
                b"-",
                b"{}",
                b'{"a":1,"a":2}',
            )
            data = data[:at] + draw(st.sampled_from(pieces)) + data[end:]
    return data


@st.composite
def bodies(draw: st.DrawFn, value: Any) -> bytes:
    """The value as JSON, written in one of the ways that JSON can be, sometimes broken."""
    data = json.dumps(value, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    return draw(broken_bytes(data)) if draw(st.integers(0, 7)) == 0 else data
