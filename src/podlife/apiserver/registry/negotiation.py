"""Content negotiation: the `Accept` header, read as kube-apiserver reads it.

Besides the objects themselves a client may ask for a table of them or for their metadata alone. JSON and YAML are
offered. Protobuf is not: every client that asks for it accepts JSON as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec

from podlife.api import codec
from podlife.apiserver.registry.request_body import bad_request
from podlife.errors import ApiError
from podlife.wire import Query

JSON = "application/json"
YAML = "application/yaml"

_META_GROUP = "meta.k8s.io"
_CONVERSIONS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_INCLUDE = ("", "Metadata", "Object", "None")
# Tools with which people read responses.
_VIEWERS = ("curl", "Wget", "Mozilla/5.0")
# The emitter's maximum: lines of a response are never folded.
_NO_WRAP = 2**31 - 1
# Indentation grows with depth: without a limit, a hundred bytes at depth one thousand become thousands.
_DEEPEST_INDENTED = 64
# Further clauses of a header are ignored.
_MOST_CLAUSES = 64
_TRUE = ("1", "t", "T", "true", "TRUE", "True")


class AcceptClause(NamedTuple):
    """One alternative of an Accept header."""

    media_type: str
    quality: float
    parameters: dict[str, str]

    def allows(self, media_type: str) -> bool:
        family = media_type.partition("/")[0]
        return self.media_type in (media_type, f"{family}/*", "*/*")

    @property
    def conversion(self) -> tuple[str, str, str] | None:
        """The group, version and kind to convert to, or None to leave objects as they are."""
        if not self.parameters.keys() & {"g", "v", "as"}:
            return None
        return (self.parameters.get("g", ""), self.parameters.get("v", ""), self.parameters.get("as", ""))


@dataclass(frozen=True, slots=True)
class Representation:
    """How objects are represented to one client. Hashable, so that it can key cached encodings."""

    media_type: str = JSON
    # `Table`, `PartialObjectMetadata`, `PartialObjectMetadataList`, or empty: the objects themselves.
    kind: str = ""
    # Requested version of meta.k8s.io; both existing versions look the same.
    version: str = "v1"
    # What a table's rows carry besides their cells: `Metadata`, `Object` or `None`.
    include_object: str = "Metadata"
    pretty: bool = False

    @property
    def api_version(self) -> str:
        return f"{_META_GROUP}/{self.version}"

    @property
    def is_plain(self) -> bool:
        """Whether objects are sent as they are stored."""
        return not self.kind and not self.pretty and self.media_type == JSON

    def finish(self, body: bytes) -> bytes:
        """Convert a JSON body to the requested media type."""
        if self.media_type == YAML:
            return to_yaml(codec.decode_object(body))
        if self.pretty and not _is_deeper(codec.decode_object(body), _DEEPEST_INDENTED):
            return msgspec.json.format(body, indent=2)
        return body


def parse_accept(header: str) -> list[AcceptClause]:
    """Return the alternatives, best first: by quality, then exact before wildcard, then in header order."""
    parts = header.split(",", _MOST_CLAUSES)[:_MOST_CLAUSES]
    clauses = [clause for part in parts if (clause := _parse_clause(part))]
    return sorted(clauses, key=lambda clause: (-clause.quality, clause.media_type.count("*")))


def negotiate(
    accept: str,
    query: Query | None = None,
    *,
    user_agent: str = "",
    streaming: bool = False,
    has_tables: bool = True,
    has_metadata: bool = True,
) -> Representation:
    """Choose the representation; `streaming` is a watch, which cannot be YAML. Not every resource has tables, and
    documents that are not objects have no metadata either.

    Raises ApiError with 406 if nothing offered is acceptable, 400 on a bad `includeObject`.
    """
    query = query or Query()
    offered = (JSON,) if streaming else (JSON, YAML)
    kinds = _CONVERSIONS[:has_tables] + _CONVERSIONS[1:] * has_metadata
    found = _choose(accept, offered, kinds) if accept else Representation()
    if found is None:
        suffix = ";stream=watch" if streaming else ""
        raise not_acceptable([media_type + suffix for media_type in offered])
    if found.kind == "Table":
        found = replace(found, include_object=_include_object(query))
    return replace(found, pretty=not streaming and (found.pretty or _wants_pretty(query, user_agent)))


def not_acceptable(offered: Sequence[str]) -> ApiError:
    message = f"only the following media types are accepted: {', '.join(offered)}"
    return ApiError(message, code=406, reason="NotAcceptable")


def _choose(accept: str, offered: Sequence[str], kinds: Sequence[str]) -> Representation | None:
    for clause in parse_accept(accept):
        for media_type in offered:
            if clause.allows(media_type) and (found := _represent(clause, media_type, kinds)):
                return found
    return None


def _represent(clause: AcceptClause, media_type: str, kinds: Sequence[str]) -> Representation | None:
    """Return the representation this alternative asks for, or None if it is not available."""
    if clause.parameters.get("stream", "watch") != "watch" or clause.parameters.get("sv", "v1") != "v1":
        return None
    plain = Representation(media_type, pretty=clause.parameters.get("pretty") == "1")
    if clause.conversion is None:
        return plain
    group, version, kind = clause.conversion
    if group != _META_GROUP or version not in ("v1", "v1beta1") or kind not in kinds:
        return None
    return replace(plain, kind=kind, version=version)


def _parse_clause(text: str) -> AcceptClause | None:
    media_type, *pairs = (part.strip(" ") for part in text.split(";"))
    if media_type == "*":
        media_type = "*/*"
    if media_type.count("/") != 1:
        return None
    parameters = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if value and "=" not in value:
            parameters[key.strip(" ")] = value.strip(" ")
    return AcceptClause(media_type, _quality(parameters.pop("q", "1")), parameters)


def _quality(text: str) -> float:
    try:
        # Python alone reads digits of every script, and underscores between them.
        return float(text) if text.isascii() and "_" not in text else 0.0
    except ValueError:
        return 0.0


def _include_object(query: Query) -> str:
    wanted = query.get("includeObject")
    if wanted not in _INCLUDE:
        raise bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{wanted}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    return wanted or "Metadata"


def _wants_pretty(query: Query, user_agent: str) -> bool:
    if wanted := query.get("pretty"):
        return wanted in _TRUE
    return user_agent.startswith(_VIEWERS)


def to_yaml(value: Any) -> bytes:
    import yaml

    if _is_deeper(value, _DEEPEST_INDENTED):
        # JSON is valid YAML, and needs neither indentation nor a deep stack.
        return codec.encode(value) + b"\n"
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(value, Dumper=dumper, allow_unicode=True, width=_NO_WRAP)
    return text.encode()


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether values are nested deeper than `levels`."""
    found = [value]
    for _ in range(levels):
        found = [
            part
            for each in found
            for part in (each.values() if isinstance(each, dict) else each)
            if isinstance(part, dict | list)
        ]
        if not found:
            return False
    return True
