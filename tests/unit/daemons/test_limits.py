"""How many files the long-lived processes may have open."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from podlife.daemons.limits import allow_many_open_files


@pytest.fixture
def limits() -> Iterator[tuple[int, int]]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("most", [512, 65_536])
def test_as_many_files_as_are_wanted_and_granted_may_be_open(limits: tuple[int, int], most: int) -> None:
    _, hard = limits
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    allow_many_open_files(most)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft == (most if hard == resource.RLIM_INFINITY else min(hard, most))


def test_who_has_more_keeps_them(limits: tuple[int, int]) -> None:
    _, hard = limits
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    allow_many_open_files()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
