"""Shell completion: names from the server, from a running `podlife up`, and fixed words.

A hanging shell is worse than no completion: errors and timeouts complete nothing and print nothing. Modules are
imported only when a shell requests a completion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from podlife.client import Ref

Completer = Callable[[typer.Context, str], list[str]]

_TIMEOUT_SECONDS = 2.0
_MAX_NAMES = 500


def _of_server(kind: str) -> Completer:
    """Completes names of objects; `kind` is the name of a reference in `podlife.client`."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        from podlife import client

        return _names(ctx, getattr(client, kind))

    return complete


namespaces, pods, nodes = map(_of_server, ("NAMESPACES", "PODS", "NODES"))


def nodes_of_up(ctx: typer.Context, incomplete: str) -> list[str]:
    from podlife.errors import PodlifeError
    from podlife.localcluster.control_socket import ask
    from podlife.localcluster.state_dir import choose_state_dir

    try:
        parts = ask(choose_state_dir(ctx.params.get("data")), {"do": "status"})["parts"]
    except (PodlifeError, OSError, ValueError, KeyError):
        return []
    others = ("apiserver", "controllers", "nodes", "ui")
    return [part["name"] for part in parts if part["name"] not in others]


def controllers(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completes the last name of a comma-separated list."""
    from podlife.daemons.catalog import known_controllers

    before, comma, _ = incomplete.rpartition(",")
    return [f"{before}{comma}{each.short}" for each in known_controllers()]


def _names(ctx: typer.Context, ref: Ref) -> list[str]:
    import asyncio
    from dataclasses import fields

    from podlife.cli.connection import ConnectionOptions, load_connection

    flags = {each.name: ctx.params.get(each.name) for each in fields(ConnectionOptions)}
    try:
        connection = load_connection(
            ConnectionOptions(**{name: value for name, value in flags.items() if value is not None})
        )
        namespace = (ctx.params.get("namespace") or connection.namespace) if ref.namespaced else ""
        return asyncio.run(_list(connection, ref, namespace))
    except Exception:
        return []


async def _list(connection: Any, ref: Ref, namespace: str) -> list[str]:
    import asyncio

    from podlife.api.views import MetadataOnly
    from podlife.client import Client, ListOptions

    async with asyncio.timeout(_TIMEOUT_SECONDS):
        async with Client.connect(connection, timeout_seconds=_TIMEOUT_SECONDS) as client:
            page = await client.list(ref, namespace, options=ListOptions(limit=_MAX_NAMES), view=MetadataOnly)
    return sorted(each.metadata.name for each in page.items)
