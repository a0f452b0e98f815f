"""Memory that was freed, given back to the system.

The C library keeps what a burst of large requests has used, between small things that are still in use, and a process
that once took a gigabyte would have it for good. So some seconds after something large has gone, the library is asked
to give back whole pages. Where it cannot be asked (another library, another system) nothing happens.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import ParamSpec, Protocol, TypeVar, cast
from weakref import WeakSet

_Arguments = ParamSpec("_Arguments")
_Value = TypeVar("_Value")


class _Clearable(Protocol):
    def cache_clear(self) -> None: ...


_Cache = TypeVar("_Cache", bound=_Clearable)

# The values that a cluster uses again and again are fewer.
_CACHED_VALUES = 256

_M_ARENA_MAX = -8

# A burst ends with many calls: one look is enough for all of them.
_SECONDS = 3.0

# A loop that was closed meanwhile never comes back to this.
_pending: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


def _find_trim() -> Callable[[int], object] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None


_trim = _find_trim()

_caches: list[Callable[[], None]] = []


def emptied_with_memory(cached: _Cache) -> _Cache:
    """A cache of what requests contain. Python's allocator returns memory by the megabyte, and an entry that was made
    amid a large request keeps its own: so these caches are emptied when memory is given back."""
    _caches.append(cached.cache_clear)
    return cached


def empty_caches_of(module: ModuleType) -> None:
    """The caches of a library's functions, likewise."""
    _caches.extend(each.cache_clear for each in vars(module).values() if hasattr(each, "cache_clear"))


def cache_values(function: Callable[_Arguments, _Value]) -> Callable[_Arguments, _Value]:
    """A small `lru_cache`, emptied with memory."""
    cached = emptied_with_memory(lru_cache(maxsize=_CACHED_VALUES)(function))
    return cast(Callable[_Arguments, _Value], cached)


def use_one_heap() -> None:
    """Give all threads of this process one heap, before the second thread starts: the C library does not return the
    free end of the heaps of worker threads."""
    if _trim is not None:
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def give_back_soon() -> None:
    """Something large has gone, or will have in a moment. Costs nothing where that is known already."""
    loop = asyncio.get_running_loop()
    if _trim is None or loop in _pending:
        return
    _pending.add(loop)
    loop.call_later(_SECONDS, _give_back, loop)


def _give_back(loop: asyncio.AbstractEventLoop) -> None:
    _pending.discard(loop)
    assert _trim is not None
    for clear in _caches:
        clear()
    # The interpreter's own caches, too: methods by name (C code looks up `utcoffset` by a new text each time, and the
    # cache keeps up to 4,096 of them), and free objects. A collection takes a third of a second per million objects
    # that came after the start.
    sys._clear_type_cache()
    gc.collect()
    # Beside the event loop: it takes milliseconds, and does not need the interpreter.
    loop.run_in_executor(None, _trim, 0)
