"""Whatever comes in, the gate answers with an object of the kind's shape or with a DecodeError."""

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podlife.api.schema import DecodeError, Type, check, duplicate_fields, type_named, type_of_kind

odd = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
SCALARS = {
    "s": st.text(max_size=4),
    "b": st.booleans(),
    "i": st.integers(-(2**31), 2**31 - 1),
    "l": st.integers(-(2**63), 2**63 - 1),
    "y": st.sampled_from(["", "YQ==", "YR==", "YW\nJj"]),
    "T": st.sampled_from(["2024-01-01T00:00:00Z", "2024-02-29T01:00:00.5+01:00"]),
    "M": st.sampled_from(["2024-01-01T00:00:00.000001Z", "2024-01-01T00:00:00.000000-02:00"]),
    "Q": st.sampled_from(["1", "0", "100m", "1Gi", "1024Mi", "1.5", 2, 0.5, "-3k", "1e3"]),
    "I": st.integers(-(2**31), 2**31 - 1) | st.text(max_size=4),
    "R": odd,
    "P": odd,
}


def values_of(kind: str, depth: int) -> st.SearchStrategy[Any]:
    if kind[0] == "[":
        return st.lists(values_of(kind[1:], depth - 1), max_size=2) if depth > 0 else st.just([])
    if kind[0] == "{":
        return st.dictionaries(st.text(max_size=3), values_of(kind[1:], depth - 1), max_size=2)
    if kind[0] == "@":
        return objects_of(type_named(kind[1:]), depth - 1) if depth > 0 else st.just({})
    return SCALARS[kind]


def objects_of(kind: Type, depth: int) -> st.SearchStrategy[Any]:
    @st.composite
    def build(draw: st.DrawFn) -> dict[str, Any]:
        names = draw(st.lists(st.sampled_from(list(kind.fields)), max_size=5, unique=True))
        return {name: draw(values_of(kind.fields[name].type, depth)) for name in names}

    return build()


POD = type_of_kind("v1", "Pod")
assert POD is not None
pods = objects_of(POD, 5)


@given(pods)
def test_a_pod_of_the_right_types_is_read_and_reading_it_again_changes_nothing(pod: Any) -> None:
    assert check("v1", "Pod", pod) == []
    again = copy.deepcopy(pod)
    assert check("v1", "Pod", again) == []
    assert again == pod


@given(pods, st.data())
def test_a_pod_with_something_odd_in_it_is_read_or_refused_and_never_worse(
    pod: Any, data: st.DataObject
) -> None:
    holder = data.draw(st.sampled_from(holders(pod)))
    key = data.draw(st.sampled_from([*holder, "unknown"]) if holder else st.just("unknown"))
    holder[key] = data.draw(odd)
    given_pod = copy.deepcopy(pod)
    try:
        check("v1", "Pod", pod)
    except DecodeError:
        assert pod == given_pod
    else:
        again = copy.deepcopy(pod)
        assert check("v1", "Pod", again) == []
        assert again == pod


def holders(value: Any) -> list[dict[str, Any]]:
    found = [value] if isinstance(value, dict) else []
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        found += holders(item)
    return found


texts = st.sampled_from(['"a"', '"\\u0061"', '"a\\""', '"\\\\"', '":"', '"b"'])
json_texts = st.recursive(
    texts | st.sampled_from(["1", "1e3", "null", "true"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(texts, st.sampled_from([":", " : "]), inner), max_size=3).map(
            lambda pairs: "{" + ",".join(key + colon + value for key, colon, value in pairs) + "}"
        )
    ),
    max_leaves=8,
)


@given(json_texts)
def test_duplicates_are_found_exactly_where_they_are(text: str) -> None:
    found = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found.append(len(pairs) != len(dict(pairs)))
        return dict(pairs)

    json.loads(text, object_pairs_hook=note)
    assert bool(duplicate_fields(text.encode())) == any(found)
