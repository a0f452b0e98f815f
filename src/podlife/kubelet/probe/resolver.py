"""Resolves host names in threads of its own.

Pods choose the names, and a name server that does not respond blocks a thread long after the request was given up. In
the shared threads a few such names would keep the node from setting up a volume or removing a container; here their
number is bounded, and they do not keep the process from exiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from ipaddress import ip_address

from podlife.kubelet.probe.target import ProbeError

_MOST_AT_ONCE = 16
_free = threading.BoundedSemaphore(_MOST_AT_ONCE)


async def resolve(host: str) -> list[str]:
    """One at least. Raises OSError and UnicodeError for a name that has none, `ProbeError` when too many wait."""
    with contextlib.suppress(ValueError):
        return [str(ip_address(host))]
    if not _free.acquire(blocking=False):
        raise ProbeError(f"lookup {host}: the node waits for {_MOST_AT_ONCE} other names already")
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[str]] = loop.create_future()
    thread = threading.Thread(target=_look_up, args=(host, found, loop), name=f"look up {host}", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        _free.release()
        raise ProbeError(f"lookup {host}: {error}") from None
    return await found


def _look_up(host: str, found: asyncio.Future[list[str]], loop: asyncio.AbstractEventLoop) -> None:
    addresses: list[str] = []
    failure: Exception | None = None
    try:
        listed = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(each[4][0]) for each in listed))
    except (OSError, ValueError) as error:
        failure = error
    finally:
        _free.release()
    # Whoever asked may have gone, and the loop with them.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(_settle, found, addresses, failure)


def _settle(found: asyncio.Future[list[str]], addresses: list[str], failure: Exception | None) -> None:
    if found.done():
        return
    if failure is not None:
        found.set_exception(failure)
    else:
        found.set_result(addresses)
