"""`podlife ui`: the lives of a cluster's pods and nodes in a browser."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podlife.cli.archive_options import ArchiveOptions
from podlife.cli.commands.explain.app import AuditLogOption
from podlife.cli.commands.gc.options import PolicyOptions
from podlife.cli.connection import ConnectionOptions, load_connection
from podlife.cli.namespaces import OneNamespaceOption, checked_namespace
from podlife.cli.options import VerbosityOption, number_option, option, with_groups

if TYPE_CHECKING:
    from podlife.daemons.ui import UiSettings


@dataclass(frozen=True, slots=True)
class PageOptions:
    port: Annotated[
        int,
        number_option(
            "Port of the page.",
            0,
            65_535,
            metavar="PORT",
            show_default="8480, or any free one if that is taken",
        ),
    ] = 0
    bind: Annotated[
        str, option("ADDRESS", "Address to listen on; beyond this machine only with a certificate.")
    ] = "127.0.0.1"
    tls_cert_file: Annotated[str, option("FILE", "Certificate of the page, in PEM.")] = ""
    tls_private_key_file: Annotated[str, option("FILE", "Key of the certificate, in PEM.")] = ""
    record: Annotated[Path | None, option("FILE", "Keep what is shown in this file, for --replay.")] = None
    replay: Annotated[Path | None, option("FILE", "Show a recorded history instead of a cluster.")] = None
    allow_actions: Annotated[
        bool, typer.Option("--allow-actions", help="Let the page sweep, after a confirmation.")
    ] = False


@with_groups
def ui(
    page: PageOptions,
    policy: PolicyOptions,
    archive: ArchiveOptions,
    connection: ConnectionOptions,
    namespace: OneNamespaceOption = None,
    audit_log: AuditLogOption = None,
    v: VerbosityOption = 0,
) -> None:
    """Serve a page that shows the pods and nodes of a cluster over time: what happened, what will, and why. Read-only
    unless --allow-actions is given."""
    from podlife.daemons import event_loop, ui
    from podlife.daemons.logs import set_up_logs

    _check_bind(page.bind)
    if page.record is not None and page.replay is not None:
        raise typer.BadParameter("--record and --replay exclude each other")
    settings = ui.UiSettings(
        replay=page.replay,
        host=page.bind,
        port=page.port,
        tls_cert_file=page.tls_cert_file,
        tls_private_key_file=page.tls_private_key_file,
        namespace=checked_namespace(namespace),
        record=page.record,
        allows_actions=page.allow_actions,
    )
    if page.replay is None:
        settings = _of_cluster(settings, policy, archive, connection, audit_log)
    set_up_logs(v)
    event_loop.run(
        ui.run(
            settings,
            on_ready=lambda url: print(f"podlife ui: {url}", flush=True),
            shutdown=event_loop.stopped_by_signals,
        )
    )


def _check_bind(address: str) -> None:
    try:
        ipaddress.ip_address(address or "::")
    except ValueError:
        if address != "localhost":
            raise typer.BadParameter(f"invalid --bind address {address!r}: expected an IP address") from None


def _of_cluster(
    settings: UiSettings,
    policy: PolicyOptions,
    archive: ArchiveOptions,
    connection: ConnectionOptions,
    audit_log: str | None,
) -> UiSettings:
    from podlife.cli.commands.explain.audit import find_own_log
    from podlife.cli.commands.explain.show import kubectl_flags
    from podlife.clock import SystemClock
    from podlife.daemons.gc import PodArchive
    from podlife.ui.cluster_api import ClusterSettings

    collector, archiving = policy.settings(), archive.archiving()
    step = None
    if archiving is not None and settings.allows_actions:
        step = PodArchive(archiving.open(SystemClock()), archiving.logs).step
    found = load_connection(connection)
    if audit_log is not None and not os.access(audit_log, os.R_OK):
        raise typer.BadParameter(f"cannot read the audit log {audit_log}: no such file, or permission denied")
    return replace(
        settings,
        connection=found,
        cluster=ClusterSettings(
            collector,
            None if archiving is None else archiving.target,
            step,
            settings.namespace,
            find_own_log(found) if audit_log is None else audit_log,
            kubectl_flags(connection),
        ),
        policy_name="" if policy.policy is None else str(policy.policy),
        request_timeout_seconds=connection.timeout_seconds,
    )
