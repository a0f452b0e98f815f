"""Policy files that hypothesis writes: what the reader takes the schema takes, it is the same when it is printed and
read again, and what is broken both refuse. Whatever the text, the reader has an answer and no traceback.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from podlife.podgc.policy.model import Policy
from podlife.podgc.policy.parse import PolicyError, read_policy
from podlife.podgc.policy.schema import policy_schema
from podlife.podgc.policy_printing import as_document, in_words
from tests.unit.podgc.policy.json_schema import is_valid

Document = dict[str, Any]
SCHEMA = policy_schema()


def some(keys: dict[str, st.SearchStrategy[Any]], least: int = 0) -> st.SearchStrategy[Document]:
    """A mapping with some of the keys."""
    optional = st.fixed_dictionaries({}, optional=keys)
    return optional.filter(lambda found: len(found) >= least) if least else optional


NAMES = st.from_regex(r"\A[a-z][a-z0-9]{0,5}\Z")
PATTERNS = st.from_regex(r"\A[a-z][a-z0-9*?-]{0,5}[a-z*]\Z")
LABELS = st.sampled_from(["a=1", "a in (x, y)", "!b", "c", "a!=2,b", "n>3", "example.com/a notin (z)"])
LENGTHS = st.sampled_from(["0s", "40s", "1m30s", "1.5h", "500ms", "7d", "2562047h", ".5s", 0])
WAITS = st.sampled_from(["1s", "10m"])
SHARES = st.sampled_from(["50%", "0.5%", "100%", "99.99%"])
CLOCKS = st.from_regex(r"\A([01][0-9]|2[0-3]):[0-5][0-9]\Z")
NAMESPACES = st.one_of(
    st.lists(PATTERNS, min_size=1, max_size=3),
    some({"names": st.lists(PATTERNS, min_size=1, max_size=3), "labels": LABELS}, 1),
)
SELECTOR: dict[str, st.SearchStrategy[Any]] = {
    "namespaces": NAMESPACES,
    "labels": LABELS,
    "ownerKind": st.lists(
        st.sampled_from(["Job", "ReplicaSet", "none", "W*", "MyKind"]), min_size=1, max_size=2
    ),
    "node": st.lists(PATTERNS, min_size=1, max_size=2),
    "phase": st.lists(st.sampled_from(["Failed", "Succeeded"]), min_size=1, max_size=2),
    "reason": st.lists(st.sampled_from(["Evicted", "OutOf*"]), min_size=1, max_size=2),
    "exitCode": st.lists(st.integers(0, 255), min_size=1, max_size=2),
}
KEEP = st.fixed_dictionaries(
    {"count": st.integers(0, 10**6)},
    optional={
        "per": st.sampled_from(["cluster", "namespace", "owner", "node"]),
        "orderBy": st.sampled_from(["completion", "creation"]),
    },
)
ENDED = st.fixed_dictionaries(
    {}, optional={"keep": KEEP, "ttlAfterFinished": LENGTHS, "maxTerminating": LENGTHS}
)


@st.composite
def rules(draw: st.DrawFn) -> list[Document]:
    """Each for a label of its own, so that none takes another's pods."""
    found = []
    for number in range(draw(st.integers(0, 3))):
        rule: Document = {"name": f"rule-{number}", **draw(ENDED.filter(bool))}
        rule["select"] = {**draw(some(SELECTOR)), "labels": f"rule={number}"}
        if "keep" in rule and "ttlAfterFinished" in rule and draw(st.booleans()):
            rule["collectWhen"] = draw(st.sampled_from(["all", "any"]))
        if ("keep" in rule or "ttlAfterFinished" in rule) and draw(st.booleans()):
            rule["waitForOwner"] = draw(WAITS)
        if draw(st.booleans()):
            excluded = st.fixed_dictionaries({"labels": LABELS}, optional={"node": SELECTOR["node"]})
            rule["exclude"] = draw(st.one_of(excluded, st.lists(excluded, max_size=2)))
        if draw(st.booleans()):
            rule["enabled"] = draw(st.booleans())
        found.append(rule)
    return found


ON = {"enabled": st.booleans()}
WINDOWS = some(
    {
        "days": st.lists(st.sampled_from(["Mon", "Sun", "Mon-Fri", "Sat-Mon"]), min_size=1, max_size=2),
        "from": CLOCKS,
        "timezone": st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
    },
    1,
)
DOCUMENTS = st.fixed_dictionaries(
    {"apiVersion": st.just("podlife.dev/v1"), "kind": st.just("PodGCPolicy")},
    optional={
        "rules": rules(),
        "upstream": some(
            {
                "terminated": some(ON | {"threshold": st.integers(0, 20_000)}, 1),
                "outOfService": some(ON, 1),
                "orphaned": some(ON | {"quarantine": LENGTHS}, 1),
                "unscheduled": some(ON, 1),
            }
        ),
        "protect": some(
            {
                "maxKeepUntil": LENGTHS,
                # Longer than any pattern of a rule, so that no rule is about them alone.
                "namespaces": st.lists(st.just("protected-namespace"), max_size=2),
                "labels": st.lists(LABELS, max_size=2),
                "annotations": st.lists(st.sampled_from(["a.b/c", "a.b/c=d", "x=", "x=y=z"]), max_size=2),
            }
        ),
        "guards": some(
            {
                "perMinute": st.integers(1, 999),
                "perPass": st.integers(1, 999),
                "shareOfNamespace": SHARES,
                "shareOfCluster": SHARES,
                "shareAtLeast": st.integers(0, 99),
                "windows": st.lists(WINDOWS, min_size=1, max_size=2),
                "observeOnly": st.booleans(),
            }
        ),
    },
)


def read(document: Document) -> Policy:
    return read_policy(json.dumps(document), "p")


@given(DOCUMENTS)
@settings(max_examples=50, deadline=None)
def test_a_good_policy_is_taken_by_both_and_is_the_same_when_printed(document: Document) -> None:
    assert is_valid(SCHEMA, document)
    policy = read(document)
    whole = as_document(policy)
    assert is_valid(SCHEMA, whole)
    again = read_policy(yaml.safe_dump(whole, sort_keys=False), "p")
    assert as_document(again) == whole
    assert (again.protection, again.guards) == (policy.protection, policy.guards)
    assert in_words(again) == in_words(policy)


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there is a value, all the way down."""
    yield path
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def changed(document: Document, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    found = copy.deepcopy(document)
    node: Any = found
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = value
    return found


@given(DOCUMENTS, st.data())
@settings(max_examples=50, deadline=None)
def test_what_is_of_a_wrong_kind_is_refused_by_both(document: Document, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(places(document), key=str)))
    wrong: Any = data.draw(st.sampled_from([None, 2.5, {"x": 1}, [[]], "\n", -(10**12)]))
    broken = changed(document, path, wrong)
    is_refused = False
    try:
        read(broken)
    except PolicyError:
        is_refused = True
    # An exit code may be nearly any number; everything else here is wrong everywhere.
    assert is_refused == (not is_valid(SCHEMA, broken)) or "exitCode" in path


@given(DOCUMENTS, st.data())
@settings(max_examples=30, deadline=None)
def test_a_key_that_is_not_known_is_refused_by_both_wherever_it_stands(
    document: Document, data: st.DataObject
) -> None:
    mappings = [path for path in places(document) if isinstance(at(document, path), dict)]
    path = data.draw(st.sampled_from(sorted(mappings, key=str)))
    broken = changed(document, path, {**at(document, path), "unheard": 1})
    assert not is_valid(SCHEMA, broken)
    with pytest.raises(PolicyError, match=r"unknown field .*unheard"):
        read(broken)


def at(node: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        node = node[step]
    return node


WORDS = st.sampled_from(
    [
        "apiVersion: podlife.dev/v1\n",
        "kind: PodGCPolicy\n",
        *("rules:\n", "- name: a\n", "  keep: {count: 1}\n"),
        *("|\n", ">\n", "---\n", "...\n", "- ", "  ", "\n", ": ", ", ", "&a ", "!!str ", "? "),
        *("[", "]", "{", "}", "*a", "<<", '"', "'", "#", "%", "~", "=", "on", "days", "from"),
        *("010", "22:00", "1e3", "0x", "\0", "\t", "\ufeff", "\u2028", "\U0001f600"),
        *("select:", "exclude:", "guards:", "windows:", "protect:", "namespaces:"),
    ]
)


@given(st.lists(st.one_of(WORDS, st.text(max_size=5)), max_size=30).map("".join))
@settings(max_examples=300, deadline=None)
def test_whatever_the_text_the_answer_is_a_policy_or_lines_with_their_places(text: str) -> None:
    try:
        read_policy(text, "p")
    except PolicyError as error:
        lines = str(error).split("\n")
        assert 1 <= len(lines) <= 21
        assert all(line.startswith("p:") and line.isprintable() for line in lines)
