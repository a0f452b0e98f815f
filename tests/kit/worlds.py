"""Tests under virtual time that are handed a world, which is there as long as they run."""

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
    """A decorator: the test runs under virtual time, with what `make` opens in its parameter of this name."""

    def decorate(test: Test) -> Callable[..., None]:
        @functools.wraps(test)
        async def run(**fixtures: Any) -> None:
            async with make() as world:
                await test(**{name: world}, **fixtures)

        # What is opened here is no fixture for pytest to look for.
        own = inspect.signature(test)
        others = [each for each in own.parameters.values() if each.name != name]
        run.__signature__ = own.replace(parameters=others)  # type: ignore[attr-defined]
        return virtual_time(run)

    return decorate
