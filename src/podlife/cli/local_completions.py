"""Shell completion that needs no server: fixed words, and names in a kubeconfig."""

from __future__ import annotations

import os
from collections.abc import Callable

import typer

Completer = Callable[[typer.Context, str], list[str]]


def one_of(*words: str) -> Completer:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def _from_kubeconfig(section: str) -> Completer:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        from podlife.client.kubeconfig import Kubeconfig
        from podlife.errors import PodlifeError

        try:
            found = Kubeconfig.find(ctx.params.get("kubeconfig") or "", os.environ)
        except PodlifeError:
            return []
        return sorted(getattr(found, section)) if found is not None else []

    return complete


contexts = _from_kubeconfig("contexts")
clusters = _from_kubeconfig("clusters")
users = _from_kubeconfig("users")
