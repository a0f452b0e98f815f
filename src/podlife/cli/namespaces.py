"""kubectl's namespace options: -n for one, -A for all."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from podlife.cli import completions
from podlife.cli.options import option


def namespace_option(help_: str, **settings: Any) -> Any:
    complete = completions.namespaces
    return option("NAME", help_, "-n", "--namespace", autocompletion=complete, **settings)


OneNamespaceOption = Annotated[str | None, namespace_option("Only pods of this namespace.")]
PodNamespaceOption = Annotated[
    str | None, namespace_option("The namespace of the pod.", show_default="that of the context")
]
EveryNamespaceOption = Annotated[
    bool, typer.Option("-A", "--all-namespaces", help="Pods of all namespaces, the default.")
]


def checked_namespace(namespace: str | None, *, is_everywhere: bool = False) -> str:
    """Empty for None. Raises BadParameter."""
    from podlife.api.names import check_dns_label

    if namespace is None:
        return ""
    # An unset variable in a script must not select every pod.
    if not namespace:
        raise typer.BadParameter("-n is empty: name a namespace, or leave it out for all of them")
    if is_everywhere:
        raise typer.BadParameter("one namespace (-n) and every namespace (-A) exclude each other")
    if problems := check_dns_label(namespace):
        raise typer.BadParameter(f"invalid namespace name {namespace!r}: {problems[0]}")
    return namespace
