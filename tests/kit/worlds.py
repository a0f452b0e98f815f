"""Runs tests under virtual time, in a world that is opened for each test."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

from podlife.testing import virtual_time

Test = Callable[..., Coroutine[Any, Any, None]]


def in_world(
    make: Callable[[], AbstractAsyncContextManager[Any]], name: str = "world"
) -> Callable[[Test], Callable[..., None]]:
    """Decorator: run the test under virtual time, and pass what `make` opens as the parameter `name`."""

    def decorate(test: Test) -> Callable[..., None]:
        @functools.wraps(test)
        async def run(**fixtures: Any) -> None:
            async with make() as world:
                await test(**{name: world}, **fixtures)

        # Hides the parameter from pytest, which would look for a fixture.
        own = inspect.signature(test)
        others = [each for each in own.parameters.values() if each.name != name]
        run.__signature__ = own.replace(parameters=others)  # type: ignore[attr-defined]
        return virtual_time(run)

    return decorate
