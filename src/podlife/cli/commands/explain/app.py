"""`podlife explain`: why a pod or a node is where it is, and the command that would unblock it; `podlife stuck`: all
pods that are stuck."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from podlife.cli import completions
from podlife.cli.archive_options import ARCHIVE_ENV, ARCHIVE_METAVAR, parse_target
from podlife.cli.connection import ConnectionOptions
from podlife.cli.namespaces import PodNamespaceOption, checked_namespace
from podlife.cli.options import GoCommand, command_group, format_option, option, with_groups

if TYPE_CHECKING:
    from podlife.podgc import Settings

# As kubectl calls them.
_KINDS = {"pods": "pod", "po": "pod", "nodes": "node", "no": "node"}


class _KindGroup(TyperGroup):
    """pod/web is pod web, as it is to kubectl; a name alone is a pod's."""

    # Any: which classes these are depends on the version of typer.
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        kind, mark, name = args[0].partition("/")
        words = [_KINDS.get(kind, kind), *([name] if mark else []), *args[1:]]
        # A second name would be that of another pod, or the first a kind that is misspelled.
        is_name_alone = not mark and not (len(words) > 1 and not words[1].startswith("-"))
        if is_name_alone and self.get_command(ctx, words[0]) is None:
            words.insert(0, "pod")
        return super().resolve_command(ctx, words)


app = command_group(
    "Why a pod or a node is where it is, what will act on it, and what would unblock it. Only reads.",
    cls=_KindGroup,
)

FormatOption = Annotated[str, format_option("text", "json", "yaml")]
PolicyOption = Annotated[
    Path | None,
    option(
        "FILE",
        "The policy of podlife's collector: also tell which rule acts and when, and what keeps it from it.",
        envvar="PODLIFE_GC_POLICY",
    ),
]
ArchiveOption = Annotated[
    str | None,
    option(
        ARCHIVE_METAVAR,
        "The archive of podlife's collector: of a pod that is gone, also tell what was kept there.",
        envvar=ARCHIVE_ENV,
    ),
]
AuditLogOption = Annotated[
    str | None,
    option(
        "FILE",
        "Audit log of the API server, with its rotated files: tells who asked; '-' is standard input.",
        envvar="PODLIFE_AUDIT_LOG",
        show_default="that of podlife up, if it is the server",
    ),
]


def _settings_of(policy: Path | None) -> Settings | None:
    """None without a policy. One that cannot be read ends the command with all that is wrong with it."""
    from podlife.cli.commands.gc.options import PolicyOptions

    return None if policy is None else PolicyOptions(policy=policy).settings()


def _checked_name(name: str, kind: str) -> str:
    from podlife.api.names import check_dns_subdomain

    # As kubectl shows it: pod/web.
    name = name.removeprefix(f"{kind}/")
    if problems := check_dns_subdomain(name):
        raise typer.BadParameter(f"invalid {kind} name {name!r}: {problems[0]}")
    return name


@app.command(cls=GoCommand)
@with_groups
def pod(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The pod's name.", autocompletion=completions.pods)
    ],
    connection: ConnectionOptions,
    namespace: PodNamespaceOption = None,
    policy: PolicyOption = None,
    archive: ArchiveOption = None,
    audit_log: AuditLogOption = None,
    output: FormatOption = "text",
) -> None:
    """What happened to a pod, where it is in its life, why it is stuck, what will act and what would unblock it; who
    deleted it, if it is gone."""
    from podlife.cli.commands.explain.show import show_pod

    wanted = checked_namespace(namespace), _checked_name(name, "pod")
    target = None if archive is None else parse_target(archive)
    sys.exit(show_pod(connection, *wanted, output, _settings_of(policy), target, audit_log))


@app.command(cls=GoCommand)
@with_groups
def node(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The node's name.", autocompletion=completions.nodes)
    ],
    connection: ConnectionOptions,
    audit_log: AuditLogOption = None,
    output: FormatOption = "text",
) -> None:
    """Whether a node is alive and takes pods, what becomes of those it has, and what would help."""
    from podlife.cli.commands.explain.show import show_node

    sys.exit(show_node(connection, _checked_name(name, "node"), output, audit_log))


@with_groups
def stuck(
    connection: ConnectionOptions,
    namespace: PodNamespaceOption = None,
    all_namespaces: Annotated[
        bool, typer.Option("-A", "--all-namespaces", help="Pods of every namespace.")
    ] = False,
    policy: PolicyOption = None,
    output: FormatOption = "text",
) -> None:
    """List the pods that are stuck, the longest first, with cause and age. Only reads."""
    from podlife.cli.commands.explain.show import show_stuck

    wanted = checked_namespace(namespace, is_everywhere=all_namespaces)
    settings = _settings_of(policy)
    sys.exit(show_stuck(connection, wanted, output, is_everywhere=all_namespaces, settings=settings))
