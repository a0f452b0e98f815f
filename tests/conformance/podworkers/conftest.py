"""Every rule holds for steps that answer at once and for those that are waited for."""

from __future__ import annotations

import pytest

from tests.conformance.podworkers.world import World


@pytest.fixture(params=["plain", "awaited"])
def world(request: pytest.FixtureRequest) -> World:
    return World(request.param)
