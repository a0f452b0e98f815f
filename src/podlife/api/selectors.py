"""Label selectors and field selectors, of query strings and of objects.

A selector is parsed once and matched often: it is immutable, compared and hashed by content, and `str()` returns the
text that a client would send. Invalid selectors raise ValueError in kube-apiserver's words. Which field paths a
resource supports is left to the API server.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podlife.api.field_errors import FieldError, bad_value, not_supported
from podlife.api.integers import parse_int64
from podlife.api.names import check_label_key, check_label_value

Labels = Mapping[str, str]

_BINARY = ("in", "notin", "=", "==", "!=", "gt", "lt")
_UNARY = ("exists", "!")
_SYMBOLS = {"gt": ">", "lt": "<"}
_FROM_OBJECT = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One condition on one label. `values` are sorted and unique; `operator` is one of upstream's words."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(self.values)})"
            case operator:
                return f"{self.key}{_SYMBOLS.get(operator, operator)}{self.values[0]}"


class LabelSelector:
    """All requirements must hold. Without requirements it matches everything; `NOTHING` matches nothing."""

    __slots__ = ("_hash", "_pairs", "_rest", "matches_nothing", "requirements")

    def __init__(
        self, requirements: Iterable[LabelRequirement] = (), *, matches_nothing: bool = False
    ) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda requirement: requirement.key))
        self.matches_nothing = matches_nothing
        # Fast path: most selectors consist of equalities.
        pairs = ((r.key, r.values[0]) for r in self.requirements if r.operator in ("=", "=="))
        self._pairs = tuple(dict.fromkeys(pairs))
        others = [r for r in self.requirements if r.operator not in ("=", "==")]
        self._rest = _Conditions(others) if others else None
        # Used for every batch of a watch.
        self._hash = hash((self.requirements, matches_nothing))

    def matches(self, labels: Labels | None) -> bool:
        if self.matches_nothing:
            return False
        labels = labels or {}
        for key, value in self._pairs:
            if labels.get(key) != value:
                return False
        return self._rest is None or self._rest.hold(labels)

    @property
    def is_empty(self) -> bool:
        """Whether it matches everything."""
        return not self.requirements and not self.matches_nothing

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"LabelSelector({'nothing' if self.matches_nothing else str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelSelector):
            return NotImplemented
        return self.requirements == other.requirements and self.matches_nothing == other.matches_nothing

    def __hash__(self) -> int:
        return self._hash


class _Conditions:
    """The other requirements, by key: the cost per object depends on its labels, not on the number of requirements."""

    __slots__ = ("_absent", "_bounds", "_present", "_unwanted", "_wanted")

    def __init__(self, requirements: Sequence[LabelRequirement]) -> None:
        self._present = frozenset(r.key for r in requirements if r.operator == "exists")
        self._absent = frozenset(r.key for r in requirements if r.operator == "!")
        self._wanted: dict[str, frozenset[str]] = {}
        self._unwanted: dict[str, set[str]] = {}
        self._bounds: dict[str, tuple[int, int]] = {}
        for requirement in requirements:
            self._add(requirement)

    def _add(self, requirement: LabelRequirement) -> None:
        key, values = requirement.key, requirement.values
        match requirement.operator:
            case "in":
                self._wanted[key] = self._wanted.get(key, frozenset(values)).intersection(values)
            case "notin" | "!=":
                self._unwanted.setdefault(key, set()).update(values)
            case "gt" | "lt" as operator:
                above, below = self._bounds.get(key, (-(2**63) - 1, 2**63))
                bound = int(values[0])
                self._bounds[key] = (
                    (max(above, bound), below) if operator == "gt" else (above, min(below, bound))
                )
            case "exists" | "!":
                pass
            case operator:
                raise ValueError(f"{operator!r} is not an operator of label selectors")

    def hold(self, labels: Labels) -> bool:
        return (
            self._present <= labels.keys()
            and self._absent.isdisjoint(labels)
            and all(labels.get(key) in values for key, values in self._wanted.items())
            and self._has_nothing_unwanted(labels)
            and all(_is_between(labels.get(key, ""), *bounds) for key, bounds in self._bounds.items())
        )

    def _has_nothing_unwanted(self, labels: Labels) -> bool:
        unwanted = self._unwanted
        if len(unwanted) <= len(labels):
            return all(labels.get(key) not in values for key, values in unwanted.items())
        return all(value not in unwanted.get(key, ()) for key, value in labels.items())


def _is_between(text: str, above: int, below: int) -> bool:
    number = _int64(text)
    return number is not None and above < number < below


def _int64(text: str) -> int | None:
    try:
        return parse_int64(text)
    except ValueError:
        return None


EVERYTHING = LabelSelector()
NOTHING = LabelSelector(matches_nothing=True)


def label_selector_from_dict(selector: Mapping[str, Any] | None) -> LabelSelector:
    """Convert a `metav1.LabelSelector`: None matches nothing, an empty one everything. Raises ValueError."""
    if selector is None:
        return NOTHING
    requirements = [
        _requirement(key, "=", [value]) for key, value in (selector.get("matchLabels") or {}).items()
    ]
    for expression in selector.get("matchExpressions") or ():
        given = expression.get("operator", "")
        operator = _FROM_OBJECT.get(given)
        if operator is None:
            raise ValueError(f'"{given}" is not a valid label selector operator')
        requirements.append(_requirement(expression.get("key", ""), operator, expression.get("values") or ()))
    return LabelSelector(requirements) if requirements else EVERYTHING


def _requirement(key: str, operator: str, values: Sequence[str]) -> LabelRequirement:
    errors = []
    if wrong := check_label_key(key):
        errors.append(bad_value("key", key, "; ".join(wrong)))
    errors += _value_count_errors(operator, values)
    for index, value in enumerate(values):
        if wrong := check_label_value(value):
            errors.append(bad_value(f"values[{index}][{key}]", value, "; ".join(wrong)))
    if errors:
        texts = list(dict.fromkeys(map(str, errors)))
        raise ValueError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    return LabelRequirement(key, operator, tuple(sorted(set(values))))


def _value_count_errors(operator: str, values: Sequence[str]) -> list[FieldError]:
    shown = list(values) or None
    match operator:
        case "in" | "notin" if not values:
            return [bad_value("values", shown, "for 'in', 'notin' operators, values set can't be empty")]
        case "=" | "==" | "!=" if len(values) != 1:
            return [bad_value("values", shown, "exact-match compatibility requires one single value")]
        case "exists" | "!" if values:
            return [bad_value("values", shown, "values set must be empty for exists and does not exist")]
        case "gt" | "lt" if len(values) != 1:
            return [bad_value("values", shown, "for 'Gt', 'Lt' operators, exactly one value is required")]
        case "gt" | "lt" if _int64(values[0]) is None:
            detail = "for 'Gt', 'Lt' operators, the value must be an integer"
            return [bad_value("values[0]", values[0], detail)]
    if operator not in _BINARY + _UNARY:
        return [not_supported("operator", operator, _BINARY + _UNARY)]
    return []


def parse_label_selector(text: str) -> LabelSelector:
    """Parse the text of a `labelSelector` parameter; raises ValueError."""
    if not text:
        return EVERYTHING
    return LabelSelector(_LabelParser(text).parse())


_TOKEN = re.compile(r"==|!=|[=!(),<>]|[^=!(),<> \t\r\n\0]+")
_SPECIAL = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">", ""))
_OPERATORS = {"in": "in", "notin": "notin", "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt"}


class _LabelParser:
    """Upstream's grammar. In the place of a key or value, `in` and `notin` are ordinary words."""

    def __init__(self, text: str) -> None:
        self._words: list[str] = [*_TOKEN.findall(text), ""]
        self._position = 0

    def _peek(self) -> str:
        return self._words[self._position]

    def _next(self) -> str:
        self._position += 1
        return self._words[self._position - 1]

    def parse(self) -> list[LabelRequirement]:
        requirements: list[LabelRequirement] = []
        if self._peek() == "":
            return requirements
        if self._peek() in _SPECIAL - {"!"}:
            raise ValueError(f"found '{self._peek()}', expected: !, identifier, or 'end of string'")
        while True:
            try:
                requirements.append(self._parse_requirement())
            except ValueError as error:
                raise ValueError(f"unable to parse requirement: {error}") from None
            word = self._next()
            if word == "":
                return requirements
            if word != ",":
                raise ValueError(f"found '{word}', expected: ',' or 'end of string'")
            if self._peek() in _SPECIAL - {"!"}:
                raise ValueError(f"found '{self._peek()}', expected: identifier after ','")

    def _parse_requirement(self) -> LabelRequirement:
        key = self._next()
        negated = key == "!"
        if negated:
            key = self._next()
        if key in _SPECIAL:
            raise ValueError(f"found '{key}', expected: identifier")
        if wrong := check_label_key(key):
            raise ValueError(str(bad_value("<nil>", key, "; ".join(wrong))))
        if negated:
            return _requirement(key, "!", ())
        if self._peek() in ("", ","):
            return _requirement(key, "exists", ())
        word = self._next()
        operator = _OPERATORS.get(word)
        if operator is None:
            raise ValueError(f"found '{word}', expected: {', '.join(_BINARY)}")
        values = self._parse_values() if operator in ("in", "notin") else [self._parse_exact_value()]
        return _requirement(key, operator, values)

    def _parse_exact_value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        word = self._next()
        if word in _SPECIAL:
            raise ValueError(f"found '{word}', expected: identifier")
        return word

    def _parse_values(self) -> list[str]:
        word = self._next()
        if word != "(":
            raise ValueError(f"found '{word}' expected: '('")
        if self._peek() in _SPECIAL - {",", ")"}:
            raise ValueError(f"found '{self._peek()}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            # A comma or a parenthesis in place of a value means the empty value.
            if self._peek() in (",", ")"):
                values.add("")
            else:
                word = self._next()
                if word in _SPECIAL:
                    raise ValueError(f"found '{word}', expected: ',', or identifier")
                values.add(word)
            word = self._next()
            if word == ")":
                return sorted(values)
            if word != ",":
                raise ValueError(f"found '{word}', expected: ',' or ')'")


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """`operator` is `=` or `!=`. An absent field counts as the empty string."""

    path: str
    operator: str
    value: str

    def __str__(self) -> str:
        return f"{self.path}{self.operator}{escape_field_value(self.value)}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All requirements must hold; without any it matches everything."""

    requirements: tuple[FieldRequirement, ...] = ()
    # Requirements by path: an object has only a few selectable fields.
    _wanted: dict[str, set[str]] = field(init=False, compare=False, repr=False, default_factory=dict)
    _unwanted: dict[str, set[str]] = field(init=False, compare=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        for requirement in self.requirements:
            by_path = self._wanted if requirement.operator == "=" else self._unwanted
            by_path.setdefault(requirement.path, set()).add(requirement.value)

    def matches(self, fields: Mapping[str, str]) -> bool:
        for path, wanted in self._wanted.items():
            if len(wanted) > 1 or fields.get(path, "") not in wanted:
                return False
        return all(fields.get(path, "") not in unwanted for path, unwanted in self._unwanted.items())

    @property
    def is_empty(self) -> bool:
        return not self.requirements

    @property
    def paths(self) -> Collection[str]:
        """The fields it selects by."""
        return self._wanted.keys() | self._unwanted.keys()

    def exact(self, path: str) -> str | None:
        """The value that the field must have, if the selector requires one."""
        for requirement in self.requirements:
            if requirement.path == path and requirement.operator == "=":
                return requirement.value
        return None

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


_TERM = re.compile(r"(?:[^\\,]|\\.|\\$)+", re.DOTALL)
_FIELD_OPERATOR = re.compile("!=|==|=")
_ESCAPE = re.compile(r"[\\,=]")


def escape_field_value(value: str) -> str:
    """The value escaped for a field selector."""
    return _ESCAPE.sub(lambda found: "\\" + found[0], value)


def parse_field_selector(text: str) -> FieldSelector:
    """Parse the text of a `fieldSelector` parameter; raises ValueError."""
    requirements = []
    for term in sorted(_TERM.findall(text)):
        operator = _FIELD_OPERATOR.search(term)
        if operator is None:
            raise ValueError(f"invalid selector: '{text}'; can't understand '{term}'")
        sign = "!=" if operator[0] == "!=" else "="
        value = _unescape_field_value(term[operator.end() :])
        requirements.append(FieldRequirement(term[: operator.start()], sign, value))
    return FieldSelector(tuple(requirements))


def _unescape_field_value(text: str) -> str:
    value = []
    characters = iter(text)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            if escaped not in ("\\", ",", "="):
                raise ValueError(f"invalid field selector: invalid escape sequence: \\{escaped}")
            value.append(escaped)
        elif character in ",=":
            # Upstream prints the number of the character, not the character.
            raise ValueError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            value.append(character)
    return "".join(value)
