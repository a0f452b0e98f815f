"""Validation rules of custom resources (CEL): what a definition may not ask, and what instances are refused for."""

from __future__ import annotations

from typing import Any

from tests.real.differential.areas.custom_resources import (
    CRDS,
    GROUP,
    array,
    crd,
    integer,
    offer,
    string,
    struct,
    version,
)
from tests.real.differential.areas.objects import Object, of
from tests.real.differential.steps import Area

# Types are numbered at random, and of equally expensive rules any four are named.
RANDOM = r"selfType\d+|\[f\d+\]"
MAP_LIST = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}


def ruled(schema: Object, *rules: Any) -> Object:
    """A schema with rules, each a text or a whole rule."""
    whole = [rule if isinstance(rule, dict) else {"rule": rule} for rule in rules]
    return {**schema, "x-kubernetes-validations": whole}


BAD_RULES = Area("crd-rule-errors", namespace=False)


def bad(name: str, schema: Object, code: int = 422) -> None:
    definition = crd("badrules", version(struct({"a": schema})))
    BAD_RULES.post(name, f"{CRDS}?dryRun=All", definition, code, unordered=True, random=RANDOM)


_text = string(maxLength=10)
_strings = array(string(maxLength=5), maxItems=5)
_entry = struct({"k": string(maxLength=9), "v": integer()}, required=["k"])

bad("undeclared", ruled(_text, "sel == 'a'"))
bad("unknown-field", ruled(struct({"b": integer()}), "self.c > 0"))
bad("syntax", ruled(_text, "self =="))
bad("wrong-operands", ruled(struct({"b": integer()}), "self.b == 'x'"))
bad("wrong-struct", ruled(struct({"b": struct({"c": integer()})}), "self.b == 1"))
bad("not-a-bool", ruled(_text, "self"))
bad("dyn-result", ruled({"x-kubernetes-int-or-string": True, "maxLength": 3}, "self"))
bad("several", ruled(_text, "x", "self == 1", "true"))
bad("unknown-function", ruled(_text, "self.nope()"))
bad("message-not-text", ruled(_text, {"rule": "self == 'a'", "messageExpression": "1 + 1"}))
bad("message-does-not-compile", ruled(_text, {"rule": "self == 'a'", "messageExpression": "self +"}))
bad("rule-and-message", ruled(_text, {"rule": "nope", "messageExpression": "nope"}))
bad("field-path", ruled(struct({"b": _text}), {"rule": "has(self.b)", "fieldPath": ".c"}))
bad("field-path-form", ruled(struct({"b": _text}), {"rule": "has(self.b)", "fieldPath": "b"}))
bad("field-path-key", ruled(struct({"b": _text}), {"rule": "has(self.b)", "fieldPath": ".['c']"}))
bad("optional-without-old", ruled(_text, {"rule": "self == 'a'", "optionalOldSelf": True}))
bad("optional-false", ruled(_text, {"rule": "self == 'a'", "optionalOldSelf": False}))
bad("old-in-atomic-list", array(ruled(_text, "self == oldSelf"), maxItems=3))
bad("old-in-a-set", array(ruled(_text, "self == oldSelf"), maxItems=3, **{"x-kubernetes-list-type": "set"}))
bad("old-below-a-list", array(struct({"b": ruled(_text, "self == oldSelf")}), maxItems=3))
bad("old-is-not-optional", ruled(_text, "oldSelf.hasValue()"))
bad("old-is-optional", ruled(_text, {"rule": "self == oldSelf", "optionalOldSelf": True}))
bad("untyped", ruled({"x-kubernetes-preserve-unknown-fields": True}, "self.a == 1"))
bad("untyped-below", ruled(array({"x-kubernetes-preserve-unknown-fields": True}), "self.size() > 0"))
bad("untyped-field", ruled(struct({"b": {"x-kubernetes-preserve-unknown-fields": True}}), "self.b == 1"))
bad("schema-error-hides-rules", ruled(struct({"b": string(id="x")}), "nope"))
bad("schema-error-elsewhere", struct({"b": string(id="x"), "c": ruled(_text, "nope")}))
bad("in-all-of", struct({}, allOf=[ruled({}, "true")]))
bad("reserved-name", ruled(struct({"in": _text, "a-b": _text}), "self.a-b == 'x'"))
bad("too-expensive", array(ruled(array(string()), "self.all(x, self.all(y, x == y))")))
bad("expensive-by-a-little", array(ruled(string(), "self.contains('ab')")))
bad("expensive-text", ruled(array(string()), "self.all(x, x.contains('abc'))"))
bad("expensive-pattern", array(ruled(string(maxLength=1000), "self.matches('^a+b*[cd]?$')")))
bad(
    "expensive-message",
    ruled(array(string()), {"rule": "true", "messageExpression": "self.join(self.join(''))"}),
)
bad(
    "expensive-together",
    struct({f"f{index}": array(ruled(_text, "self == 'a'"), maxItems=1_500_000) for index in range(60)}),
)
bad("expensive-map", {"type": "object", "additionalProperties": ruled(string(), "self.contains('ab')")})
bad("default-violates", ruled(string(maxLength=5, default="b"), "self == 'a'"))
bad(
    "default-inside",
    struct({"b": ruled(_text, {"rule": "self == 'a'", "message": "no"})}, default={"b": "b"}),
)
bad("default-fails", ruled(struct({"b": integer()}, default={}), "self.b > 1"))
bad("good", ruled(struct({"in": _text, "a-b": _text}), "self.__in__ == self.a__dash__b"), 201)
bad("good-untyped-field-unused", struct({"b": {"x-kubernetes-preserve-unknown-fields": True}}), 201)

RULES = Area("crd-rules")
R = f"/apis/{GROUP}/v1/namespaces/${{ns}}/ruleds"
_spec = struct(
    {
        "text": ruled(string(maxLength=20), {"rule": "self.startsWith('a')", "message": "must start with a"}),
        "plain": ruled(string(maxLength=20), "self != 'bad'"),
        "number": ruled(integer(), "self % 2 == 0"),
        "ratio": ruled({"type": "number"}, "self < 1.5"),
        "flag": ruled({"type": "boolean"}, "self"),
        "list": ruled(_strings, "self.exists(x, x == 'x')", "self.size() < 3"),
        "items": array(ruled(string(maxLength=5), "self != 'no'"), maxItems=5),
        "set": ruled({**_strings, "x-kubernetes-list-type": "set"}, "self == ['b', 'a']"),
        "entries": ruled(
            array(
                ruled(
                    _entry,
                    "!has(self.v) || self.v > 0",
                    {"rule": "self.v >= oldSelf.v", "message": "may not shrink"},
                ),
                maxItems=5,
                **MAP_LIST,
            ),
            "self.all(e, e.k.size() < 4)",
        ),
        "map": ruled(
            {
                "type": "object",
                "maxProperties": 5,
                "additionalProperties": ruled(integer(), "self < 10"),
            },
            "!('no' in self)",
        ),
        "either": ruled(
            {"x-kubernetes-int-or-string": True, "maxLength": 5},
            "type(self) == int ? self < 5 : self == 'five'",
        ),
        "either-plus": ruled({"x-kubernetes-int-or-string": True, "maxLength": 5}, "self + 1 < 5"),
        "when": ruled(string(format="date-time"), "self < timestamp('2030-01-01T00:00:00Z')"),
        "long": ruled(string(format="duration"), "self < duration('1h')"),
        "bytes": ruled(string(format="byte", maxLength=20), "self == b'ab'"),
        "maybe": ruled(string(nullable=True, maxLength=9), "self == 'here'"),
        "kind": ruled(string(enum=["A", "B"]), {"rule": "self == oldSelf", "message": "is immutable"}),
        "resource": ruled(
            struct(
                None,
                **{"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
            ),
            "self.metadata.name == 'inner'",
        ),
        "reasons": ruled(
            struct({"a": string(maxLength=5), "b": struct({"c": string(maxLength=5)})}),
            {"rule": "self.a != 'f'", "reason": "FieldValueForbidden", "fieldPath": ".a"},
            {
                "rule": "self.a != 'r'",
                "reason": "FieldValueRequired",
                "fieldPath": ".b.c",
                "message": "give c",
            },
            {"rule": "self.a != 'd'", "reason": "FieldValueDuplicate"},
            {"rule": "self.a != 'i'", "reason": "FieldValueInvalid", "fieldPath": ".b"},
        ),
        "scalar-reason": ruled(string(maxLength=5), {"rule": "self != 'd'", "reason": "FieldValueDuplicate"}),
        "said": ruled(
            string(maxLength=2000),
            {"rule": "self == 'a'", "messageExpression": "'not ' + self", "message": "not a"},
        ),
        "said-badly": ruled(
            string(maxLength=9), {"rule": "self == 'a'", "messageExpression": "' '", "message": "plain"}
        ),
        "said-with-lines": ruled(
            string(maxLength=9), {"rule": "self == 'a'", "messageExpression": "'a\\nb'"}
        ),
        "said-failing": ruled(
            struct({"a": string(maxLength=5), "b": string(maxLength=5)}),
            {"rule": "self.a == 'a'", "messageExpression": "self.b + '!'", "message": "fallback"},
        ),
        "optional": ruled(
            string(maxLength=9),
            {"rule": "oldSelf.hasValue() ? self != 'new' : self == 'new'", "optionalOldSelf": True},
        ),
        "absent": ruled(struct({"a": integer(), "b": integer()}), "self.a < self.b"),
        "division": ruled(integer(), "10 / self > 1"),
        "in": ruled(string(maxLength=9), "self == 'in'"),
        "odd name": ruled(string(maxLength=9), "self == 'odd'"),
        "costly": ruled(array(integer(), maxItems=1000), "self.all(x, self.all(y, x + y >= 0))"),
    }
)
_schema = ruled(
    struct({"spec": _spec, "status": struct({"phase": ruled(string(maxLength=9), "self == 'On'")})}),
    {"rule": "self.metadata.name != 'reserved'", "message": "name is reserved"},
    "self.kind == 'Ruled' && self.apiVersion.endsWith('/v1')",
)
offer(RULES, crd("ruleds", version(_schema, subresources={"status": {}})))


def instance(name: str, spec: Any = None, **more: Any) -> Object:
    return of(f"{GROUP}/v1", "Ruled", name, **({"spec": spec} if spec is not None else {}), **more)


def refuse(name: str, spec: Any) -> None:
    RULES.post(name, f"{R}?dryRun=All", instance("x", spec), 422, unordered=True)


def accept(name: str, spec: Any) -> None:
    RULES.post(name, f"{R}?dryRun=All", instance("x", spec))


RULES.post("reserved-name", R, instance("reserved"), 422)
accept("nothing", {})
refuse("text", {"text": "b"})
refuse("plain", {"plain": "bad"})
refuse("number", {"number": 3})
refuse("ratio", {"ratio": 1.75})
accept("whole-ratio", {"ratio": 1})
refuse("flag", {"flag": False})
refuse("list", {"list": ["a", "b", "c"]})
refuse("items", {"items": ["yes", "no", "no"]})
refuse("set", {"set": ["a", "c"]})
accept("set-in-any-order", {"set": ["a", "b"]})
refuse("entries", {"entries": [{"k": "long", "v": 0}, {"k": "b", "v": -1}]})
refuse("map", {"map": {"no": 1, "a": 12}})
refuse("either-number", {"either": 7})
refuse("either-text", {"either": "six"})
refuse("either-plus", {"either-plus": "x"})
refuse("when", {"when": "2031-01-01T00:00:00Z"})
refuse("long", {"long": "2h"})
refuse("bytes", {"bytes": "YWM="})
refuse("maybe", {"maybe": "there"})
accept("maybe-null", {"maybe": None})
refuse("resource", {"resource": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}})
for each in "frdi":
    refuse(f"reason-{each}", {"reasons": {"a": each}})
refuse("scalar-reason", {"scalar-reason": "d"})
refuse("said", {"said": "b"})
refuse("said-badly", {"said-badly": "b"})
refuse("said-with-lines", {"said-with-lines": "b"})
refuse("said-failing", {"said-failing": {"a": "b"}})
refuse("optional-new", {"optional": "old"})
refuse("absent-field", {"absent": {"a": 1}})
refuse("division-by-zero", {"division": 0})
refuse("reserved-word", {"in": "out"})
refuse("odd-name", {"odd name": "even"})
refuse("costly", {"costly": list(range(1000))})
refuse("blocked-by-a-type", {"text": 1, "plain": "bad"})
refuse("blocked-by-an-enum", {"kind": "C", "plain": "bad"})
refuse("not-blocked", {"ratio": 2.5, "plain": "bad"})

_good = {
    "kind": "A",
    "optional": "new",
    "entries": [{"k": "a", "v": 5}, {"k": "b", "v": 5}],
    "text": "a",
}
RULES.post("create", R, instance("one", _good), keep={"version": "metadata.resourceVersion"})
RULES.patch("optional-same", "merge", f"{R}/one", {"metadata": {"labels": {"a": "b"}}}, 422)
RULES.patch("optional-other", "merge", f"{R}/one", {"spec": {"optional": "other"}})
RULES.patch("immutable", "merge", f"{R}/one", {"spec": {"kind": "B"}}, 422)
RULES.patch("immutable-removed", "merge", f"{R}/one?dryRun=All", {"spec": {"kind": None}})
RULES.patch(
    "shrink",
    "merge",
    f"{R}/one",
    {"spec": {"entries": [{"k": "b", "v": 4}, {"k": "a", "v": 6}]}},
    422,
    unordered=True,
)
RULES.patch("new-entry", "merge", f"{R}/one", {"spec": {"entries": [{"k": "c", "v": 1}, {"k": "a", "v": 6}]}})
RULES.patch("status", "merge", f"{R}/one/status", {"status": {"phase": "Off"}}, 422)
RULES.patch("status-on", "merge", f"{R}/one/status", {"status": {"phase": "On"}})
RULES.put(
    "several",
    f"{R}/one",
    instance("one", {"kind": "B", "number": 3, "text": "b"}),
    422,
    unordered=True,
)

RATCHET = Area("crd-rules-ratchet")
T = f"/apis/{GROUP}/v1/namespaces/${{ns}}/ratchets"


def _ratchet(*, is_strict: bool) -> Object:
    rules = ["self != 'bad'"] if is_strict else ["true"]
    whole = ["self.a != 'bad'"] if is_strict else ["true"]
    text = ruled(string(maxLength=9), *rules)
    item = struct({"k": string(maxLength=9), "v": text}, required=["k"])
    properties = {
        "a": text,
        "b": string(maxLength=9),
        "atomic": array(item, maxItems=5),
        "keyed": array(item, maxItems=5, **MAP_LIST),
        "map": {"type": "object", "additionalProperties": text, "maxProperties": 5},
    }
    return struct({"spec": ruled(struct(properties), *whole)})


offer(RATCHET, crd("ratchets", version(_ratchet(is_strict=False))))
_stored = {
    "a": "bad",
    "b": "x",
    "atomic": [{"k": "1", "v": "bad"}],
    "keyed": [{"k": "1", "v": "bad"}, {"k": "2", "v": "ok"}],
    "map": {"m": "bad"},
}


def ratchet(name: str, spec: Any) -> Object:
    return of(f"{GROUP}/v1", "Ratchet", name, spec=spec)


RATCHET.post("create", T, ratchet("one", _stored))
RATCHET.patch(
    "stricter",
    "merge",
    f"{CRDS}/ratchets.{GROUP}",
    {"spec": {"versions": [version(_ratchet(is_strict=True))]}},
    pick=lambda body: body["spec"],
)
RATCHET.post(
    "is-strict",
    f"{T}?dryRun=All",
    ratchet("x", {"a": "bad"}),
    422,
    until=lambda body: body["kind"] == "Status",
    unordered=True,
)
RATCHET.patch("labels", "merge", f"{T}/one?dryRun=All", {"metadata": {"labels": {"a": "b"}}}, unordered=True)
RATCHET.patch("other-field", "merge", f"{T}/one?dryRun=All", {"spec": {"b": "y"}}, 422, unordered=True)
RATCHET.patch("mended", "merge", f"{T}/one?dryRun=All", {"spec": {"a": "good"}}, unordered=True)
RATCHET.patch(
    "still-bad", "merge", f"{T}/one?dryRun=All", {"spec": {"map": {"n": "bad"}}}, 422, unordered=True
)
RATCHET.patch(
    "atomic-list",
    "merge",
    f"{T}/one?dryRun=All",
    {"spec": {"a": "good", "atomic": [{"k": "1", "v": "bad"}, {"k": "2"}]}},
    422,
    unordered=True,
)
RATCHET.patch(
    "keyed-list",
    "merge",
    f"{T}/one?dryRun=All",
    {"spec": {"a": "good", "keyed": [{"k": "3", "v": "ok"}, {"k": "1", "v": "bad"}]}},
    unordered=True,
)
RATCHET.patch(
    "keyed-list-new",
    "merge",
    f"{T}/one?dryRun=All",
    {"spec": {"a": "good", "keyed": [{"k": "3", "v": "bad"}, {"k": "1", "v": "bad"}]}},
    422,
    unordered=True,
)
