"""Conflicting ports are looked up; comparing all pairs is the oracle."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podlife.apiserver.strategies.core.pod.warnings import _overlap, spec_warnings
from podlife.apiserver.strategies.strategy import MOST_WARNINGS

PORTS = st.lists(
    st.fixed_dictionaries(
        {"containerPort": st.integers(1, 2), "protocol": st.sampled_from(["TCP", "UDP"])},
        optional={"hostPort": st.integers(0, 2), "hostIP": st.sampled_from(["", "10.0.0.1", "10.0.0.2"])},
    ),
    max_size=12,
)


def all_pairs(ports: list[dict[str, Any]]) -> list[str]:
    found: list[str] = []
    for number, port in enumerate(ports):
        for before, other in enumerate(ports[:number]):
            if all(port[field] == other[field] for field in ("containerPort", "protocol")):
                at = "spec.containers[0].ports"
                found += _overlap(port, f"{at}[{number}]", other, f"{at}[{before}]")
    return found


@given(PORTS)
def test_the_warnings_are_those_of_comparing_each_with_each(ports: list[dict[str, Any]]) -> None:
    spec = {"containers": [{"name": "main", "image": "i", "ports": ports}]}
    assert spec_warnings(spec, "spec") == all_pairs(ports)[:MOST_WARNINGS]


def test_of_many_that_clash_only_so_many_are_told() -> None:
    spec = {"containers": [{"ports": [{"containerPort": 80, "protocol": "TCP"}] * 60_000}]}
    assert len(spec_warnings(spec, "spec")) == MOST_WARNINGS
