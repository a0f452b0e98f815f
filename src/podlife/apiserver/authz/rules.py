"""Rules of RBAC: which requests a role allows, and the single permissions that its rules grant.

A role is compiled once: its rules are found by the resources and the object that they name, so a decision looks at few
of them. The size of what is compiled is linear in the role; permissions, which multiply, are counted before they are
listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from podlife.api.codec import Object, encode
from podlife.apiserver.authz.attributes import Attributes

ALL = "*"
# More lines than anyone reads.
_MOST_LINES = 500
# A rule is found by the names of its objects if that takes at most so many entries for each of its values.
_ENTRIES_PER_VALUE = 4


# Not frozen: a role may have tens of thousands.
@dataclass(slots=True, eq=False)
class _Rule:
    """A rule apart from its resources. None stands for everything."""

    verbs: frozenset[str] | None
    groups: frozenset[str] | None
    names: frozenset[str] | None
    paths: frozenset[str]
    prefixes: tuple[str, ...]

    @classmethod
    def from_object(cls, rule: Object, shared: dict[tuple[str, ...], frozenset[str] | None]) -> _Rule:
        """Rules of one role share equal sets of verbs and groups."""
        paths = _values(rule, "nonResourceURLs")
        verbs, groups = tuple(_values(rule, "verbs")), tuple(_values(rule, "apiGroups"))
        for values in (verbs, groups):
            if values not in shared:
                shared[values] = None if ALL in values else frozenset(values)
        return cls(
            shared[verbs],
            shared[groups],
            frozenset(_values(rule, "resourceNames")) or None,
            frozenset(paths),
            tuple(path.rstrip(ALL) for path in paths if path.endswith(ALL)),
        )

    def allows(self, asked: Attributes) -> bool:
        return (
            (self.verbs is None or asked.verb in self.verbs)
            and (self.groups is None or asked.group in self.groups)
            and (self.names is None or asked.name in self.names)
        )

    def allows_path(self, asked: Attributes) -> bool:
        if self.verbs is not None and asked.verb not in self.verbs:
            return False
        return asked.path in self.paths or asked.path.startswith(self.prefixes)


def _values(rule: Object, field: str) -> Sequence[str]:
    return rule.get(field) or ()


class RuleSet:
    """The rules of one role."""

    __slots__ = ("_by_resource", "_of_paths", "rules")

    def __init__(self, rules: Sequence[Object]) -> None:
        self.rules = rules
        # By resource and name of the object; without a name are rules that have none, or too many to be found by them.
        self._by_resource: dict[str, dict[str, list[_Rule]]] = {}
        self._of_paths: list[_Rule] = []
        shared: dict[tuple[str, ...], frozenset[str] | None] = {}
        for each in rules:
            rule = _Rule.from_object(each, shared)
            if rule.paths:
                self._of_paths.append(rule)
            resources, names = frozenset(_values(each, "resources")), rule.names or frozenset(("",))
            if len(resources) * len(names) > _ENTRIES_PER_VALUE * (len(resources) + len(names)):
                names = frozenset(("",))
            for resource in resources:
                by_name = self._by_resource.setdefault(resource, {})
                for name in names:
                    by_name.setdefault(name, []).append(rule)

    def allows(self, asked: Attributes) -> bool:
        if not asked.resource:
            return any(rule.allows_path(asked) for rule in self._of_paths)
        names = (asked.target, ALL, f"*/{asked.subresource}") if asked.subresource else (asked.resource, ALL)
        return any(rule.allows(asked) for name in names for rule in self._candidates(name, asked.name))

    def _candidates(self, resource: str, name: str) -> Iterator[_Rule]:
        if by_name := self._by_resource.get(resource):
            yield from by_name.get("", ())
            if name:
                yield from by_name.get(name, ())


def count_permissions(rules: Iterable[Object]) -> int:
    """Return how many permissions `permissions` would list."""
    count = 0
    for rule in rules:
        verbs, names = len(_values(rule, "verbs")), len(_values(rule, "resourceNames"))
        count += prod((len(_values(rule, "apiGroups")), len(_values(rule, "resources")), verbs, names or 1))
        count += len(_values(rule, "nonResourceURLs")) * verbs
    return count


def permissions(rules: Iterable[Object]) -> Iterator[Attributes]:
    """Split rules into permissions of one verb on one resource of one group, of one name at most, or on one path.

    `*` stands for itself: only a rule with `*` allows it.
    """
    for rule in rules:
        verbs = _values(rule, "verbs")
        for group in _values(rule, "apiGroups"):
            for resource in _values(rule, "resources"):
                kind, _, subresource = resource.partition("/")
                for verb in verbs:
                    for name in _values(rule, "resourceNames") or ("",):
                        yield Attributes(verb, group, kind, subresource, name=name)
        for path in _values(rule, "nonResourceURLs"):
            for verb in verbs:
                yield Attributes(verb, path=path)


def describe(missing: Iterable[Attributes]) -> str:
    """List permissions in upstream's words, those that differ only by verb in one line."""
    verbs: dict[tuple[str, ...], list[str]] = {}
    for each in missing:
        # Upstream does not join the verbs of a path.
        what = (each.group, each.target, each.name) if each.resource else (each.path, each.verb)
        verbs.setdefault(what, []).append(each.verb)
    lines = sorted({_line(what, of) for what, of in verbs.items()})
    more = [f"... and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []
    return "\n".join(lines[:_MOST_LINES] + more)


def _line(what: tuple[str, ...], verbs: list[str]) -> str:
    if len(what) == 2:
        return f"{{NonResourceURLs:{quoted(what[:1])}, Verbs:{quoted(verbs)}}}"
    group, resource, name = what
    names = f"ResourceNames:{quoted([name])}, " if name else ""
    return f"{{APIGroups:{quoted([group])}, Resources:{quoted([resource])}, {names}Verbs:{quoted(verbs)}}}"


def quoted(values: Iterable[str]) -> str:
    """As Go prints strings with %q."""
    return f"[{' '.join(encode(value).decode() for value in values)}]"
