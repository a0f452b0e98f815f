"""The event loop of the test kit, under the name by which the tests know it."""

from __future__ import annotations

from podlife.testing.virtual_loop import VirtualTimeLoop, virtual_time

__all__ = ["VirtualTimeLoop", "virtual_time"]
