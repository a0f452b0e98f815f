"""Matches pods against all selectors of a policy at once. Pure.

Every selector has a bit. Its conditions fall into three parts: the pod's facts, its namespace and its node. For each
distinct value of a part, the bits of the matching selectors are computed once. A pod's rule is then the lowest bit of
three integers combined, however many rules there are.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from podlife.api.selectors import LabelSelector
from podlife.podgc.policy.model import Per, Policy, Protection, Rule, Selector

NO_OWNER = "none"
"""The owner kind that selects pods without a controller."""

# Cache sizes; a full cache is cleared.
_MOST_KNOWN = 65_536
_LONGEST_KNOWN = 1024

FactsKey = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...], str, str, str, frozenset[int]]
"""Labels, annotations, owner kind, phase, reason, exit codes: only what the policy asks for."""


class SelectorBits:
    """The selectors that match a pod's facts, or a namespace, and what protects it. Many pods share one."""

    __slots__ = ("bits", "protected_by")

    def __init__(self, bits: int, protected_by: str) -> None:
        self.bits = bits
        self.protected_by = protected_by


class Matcher:
    """A policy, prepared for matching."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.rules = tuple(rule for rule in policy.rules if rule.is_on)
        self._selectors = [rule.selector for rule in self.rules]
        self._rule_bits = (1 << len(self.rules)) - 1
        self._exclude_bits = [self._take(rule) for rule in self.rules]
        self._every_bit = (1 << len(self._selectors)) - 1
        protection = policy.protection
        self.label_keys = _label_keys(self._selectors, protection)
        self.annotation_keys = frozenset(name for name, _ in protection.annotations)
        self._exit_codes = frozenset[int]().union(*(each.exit_codes for each in self._selectors))
        self._asks_phase = any(each.phases for each in self._selectors)
        self._asks_reason = any(each.reasons for each in self._selectors)
        self._asks_owner_kind = any(each.owner_kinds for each in self._selectors)
        self._asks_node = any(each.nodes for each in self._selectors)
        self.asks_namespace_labels = any(each.namespace_labels is not None for each in self._selectors)
        self.asks_owner = any(rule.keep is not None and rule.keep.per is Per.OWNER for rule in self.rules)
        self._facts: dict[FactsKey, SelectorBits] = {}
        self._nodes: dict[str, int] = {}

    def _take(self, rule: Rule) -> int:
        """Assign bits to the rule's excludes."""
        first = len(self._selectors)
        self._selectors.extend(rule.exclude)
        return (1 << len(self._selectors)) - (1 << first)

    # Matching

    def facts_of(
        self,
        labels: Mapping[str, str],
        annotations: Mapping[str, str],
        owner_kind: str,
        phase: str,
        reason: str,
        exit_codes: frozenset[int],
    ) -> SelectorBits:
        key: FactsKey = (
            tuple((name, labels[name]) for name in self.label_keys if name in labels),
            tuple((name, annotations[name]) for name in self.annotation_keys if name in annotations),
            owner_kind if self._asks_owner_kind else "",
            phase if self._asks_phase else "",
            reason if self._asks_reason else "",
            exit_codes & self._exit_codes,
        )
        if (known := self._facts.get(key)) is not None:
            return known
        facts = self._judge(key)
        # Long texts are rarely shared, and the cache would keep them after their pod is gone.
        if len(reason) + sum(len(value) for _, value in key[1]) <= _LONGEST_KNOWN:
            if len(self._facts) >= _MOST_KNOWN:
                self._facts.clear()
            self._facts[key] = facts
        return facts

    def _judge(self, key: FactsKey) -> SelectorBits:
        labels, annotations = dict(key[0]), dict(key[1])
        _, _, owner_kind, phase, reason, exit_codes = key
        bits = 0
        for place, selector in enumerate(self._selectors):
            if (
                (selector.labels is None or selector.labels.matches(labels))
                and (not selector.phases or phase in selector.phases)
                and (not selector.exit_codes or not selector.exit_codes.isdisjoint(exit_codes))
                and _is_named(selector.owner_kinds, owner_kind)
                and _is_named(selector.reasons, reason)
            ):
                bits |= 1 << place
        return SelectorBits(bits, _protected_by(self.policy.protection, labels, annotations))

    def namespace_bits(self, namespace: str, labels: Mapping[str, str]) -> SelectorBits:
        bits = 0
        for place, selector in enumerate(self._selectors):
            wanted = selector.namespace_labels
            if _is_named(selector.namespaces, namespace) and (wanted is None or wanted.matches(labels)):
                bits |= 1 << place
        names = self.policy.protection.namespaces
        pattern = next((name for name in names if _is_named((name,), namespace)), "")
        return SelectorBits(bits, f"namespace {pattern}" if pattern else "")

    def _node_bits(self, node: str) -> int:
        if not self._asks_node:
            return self._every_bit
        if (known := self._nodes.get(node)) is not None:
            return known
        if len(self._nodes) >= _MOST_KNOWN:
            self._nodes.clear()
        bits = sum(
            1 << place for place, selector in enumerate(self._selectors) if _is_named(selector.nodes, node)
        )
        self._nodes[node] = bits
        return bits

    # Rules

    def place_of(self, facts: SelectorBits, namespace: SelectorBits, node: str) -> tuple[int, int]:
        """The index of the pod's rule among the enabled ones, and of the exclude that matches; -1 for none."""
        bits = facts.bits & namespace.bits
        if not bits & self._rule_bits:
            return -1, -1
        bits &= self._node_bits(node)
        mine = bits & self._rule_bits
        if not mine:
            return -1, -1
        place = _lowest(mine)
        excludes = self._exclude_bits[place]
        if not bits & excludes:
            return place, -1
        return place, _lowest(bits & excludes) - _lowest(excludes)


@lru_cache(maxsize=4)
def matcher_of(policy: Policy) -> Matcher:
    return Matcher(policy)


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _label_keys(selectors: Iterable[Selector], protection: Protection) -> tuple[str, ...]:
    asked: list[LabelSelector] = [each.labels for each in selectors if each.labels is not None]
    asked.extend(protection.labels)
    return tuple(sorted({requirement.key for each in asked for requirement in each.requirements}))


def _protected_by(protection: Protection, labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    for selector in protection.labels:
        if selector.matches(labels):
            return f"labels {selector}"
    for name, value in protection.annotations:
        if name in annotations and value in (None, annotations[name]):
            return f"annotation {name}" if value is None else f"annotation {name}={value}"
    return ""


def _is_named(patterns: tuple[str, ...], name: str) -> bool:
    return not patterns or _pattern(patterns)(name) is not None


@lru_cache(maxsize=1024)
def _pattern(patterns: tuple[str, ...]) -> Callable[[str], re.Match[str] | None]:
    """Only `*` and `?` are special. The text is untrusted: `fnmatch.translate` uses atomic groups, so matching does not
    backtrack and its time is linear in the text."""
    parts = (fnmatch.translate(each.replace("[", "[[]")) for each in patterns)
    return re.compile("|".join(parts)).fullmatch
