"""Health endpoints of a controller: `/healthz` (alive), `/readyz` (working), `/metrics`, and `/`, which links to them.

`Health` holds the named checks and does no I/O; `HealthServer` serves them. A failing check reports its name and the
reason in the format of Kubernetes' health endpoints. Nothing served here is secret or writable, and heads,
connections and the time to send a request are bounded.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from podlife.errors import ConfigError

if TYPE_CHECKING:
    from aiohttp import web
    from prometheus_client import CollectorRegistry

Check = Callable[[], str]
"""Returns the reason of a failure; empty if healthy. Called at every probe, so it must not block."""

_TEXT = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_HTML = {**_TEXT, "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": "default-src 'none'"}


@dataclass(frozen=True, slots=True)
class Index:
    """What `/` shows: more links by their text, and lines of text."""

    title: str = "podlife"
    links: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def as_html(self, *paths: str) -> str:
        links = {path: path for path in paths} | dict(self.links)
        items = [f'<li><a href="{escape(to)}">{escape(text)}</a>' for text, to in links.items()]
        notes = [f"<p>{escape(note)}" for note in self.notes]
        head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(self.title)}</title>'
        return "\n".join([head, f"<h1>{escape(self.title)}</h1>", "<ul>", *items, "</ul>", *notes, ""])


class Health:
    """Checks by name. A failed `liveness` check means that only a restart helps; any other, not ready."""

    def __init__(self) -> None:
        self._checks: dict[str, tuple[Check, bool]] = {}

    def add(self, name: str, check: Check, *, liveness: bool = False) -> None:
        """Raises ValueError if the name is taken."""
        if name in self._checks:
            raise ValueError(f"health check {name!r} already exists")
        self._checks[name] = (check, liveness)

    def report(self, endpoint: str, *, liveness: bool) -> tuple[bool, str]:
        """Whether all checks pass, and a line per check. Readiness runs all checks, liveness only its own."""
        answers = {
            name: _answer(check)
            for name, (check, is_liveness) in self._checks.items()
            if is_liveness or not liveness
        }
        is_well = not any(answers.values())
        lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in answers.items()]
        return is_well, "\n".join([*lines, f"{endpoint} check {'passed' if is_well else 'failed'}", ""])


def _answer(check: Check) -> str:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - a check that raises counts as failed
        return f"the check itself failed: {error!r}"


class HealthServer:
    """Listens on `host:port`; with port 0 the system chooses one. `registry` is what `/metrics` shows."""

    def __init__(
        self,
        host: str,
        port: int,
        health: Health,
        *,
        registry: CollectorRegistry | None = None,
        index: Index | None = None,
    ) -> None:
        self._host = host
        self._wanted_port = port
        self._health = health
        self._registry = registry
        self._index = index or Index()
        self._addresses: asyncio.Future[list[tuple[str, int]]] | None = None

    async def addresses(self) -> list[str]:
        """The bound addresses as HOST:PORT, once it listens. An empty host means all IPv4 and IPv6 addresses; with port
        0 each of the two has its own port."""
        return [
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            for host, port in await asyncio.shield(self._bound())
        ]

    async def port(self) -> int:
        return (await asyncio.shield(self._bound()))[0][1]

    async def run(self) -> None:
        """Serve until cancelled. Raises ConfigError if the address cannot be bound."""
        from aiohttp import web

        from podlife.bounded_connection import OpenServer

        runner = web.ServerRunner(OpenServer(self._serve), shutdown_timeout=1.0)
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, self._host, self._wanted_port).start()
            except OSError as error:
                raise ConfigError(_why_not(self._host, self._wanted_port, error)) from None
            bound = self._bound()
            if not bound.done():
                bound.set_result([(address[0], address[1]) for address in runner.addresses])
            await asyncio.get_running_loop().create_future()
        finally:
            await runner.cleanup()

    def _bound(self) -> asyncio.Future[list[tuple[str, int]]]:
        if self._addresses is None:
            self._addresses = asyncio.get_running_loop().create_future()
        return self._addresses

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        from aiohttp import web

        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="405 method not allowed\n", headers={"Allow": "GET, HEAD"})
        if request.path in ("/healthz", "/livez", "/readyz"):
            return self._serve_health(request)
        if request.path == "/":
            paths = ("/healthz", "/readyz?verbose", *(("/metrics",) if self._registry is not None else ()))
            return web.Response(text=self._index.as_html(*paths), headers=_HTML)
        if request.path == "/metrics" and self._registry is not None:
            from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

            content_type = {"Content-Type": CONTENT_TYPE_LATEST}
            return web.Response(body=generate_latest(self._registry), headers={**_TEXT, **content_type})
        return web.Response(status=404, text="404 page not found\n", headers=_TEXT)

    def _serve_health(self, request: web.BaseRequest) -> web.Response:
        from aiohttp import web

        is_well, report = self._health.report(request.path[1:], liveness=request.path != "/readyz")
        # As in Kubernetes: "ok" unless `verbose` is requested; a failure always lists the checks.
        text = report if not is_well or "verbose" in request.query else "ok"
        return web.Response(status=200 if is_well else 503, text=text, headers=_TEXT)


def _why_not(host: str, port: int, error: OSError) -> str:
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if error.errno == errno.EADDRINUSE:
        return f"cannot listen on {address}: address already in use; choose another port, or 0 for any"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"cannot listen on {address}: permission denied; choose a port of 1024 or above"
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return (
            f"cannot listen on {address}: not an address of this machine; use 127.0.0.1 for local access only"
        )
    # The event loop's own message wraps the system's.
    return f"cannot listen on {address}: {os.strerror(error.errno) if error.errno else error}"
