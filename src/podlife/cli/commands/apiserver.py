"""`podlife apiserver`: runs a server, and maintains its data."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from podlife.cli.options import duration_option, not_negative, number_option, option
from podlife.cli.output import counted
from podlife.errors import ConfigError

# Issuer of tokens, as kubeadm sets it; not imported, because the server is not loaded to parse flags.
DEFAULT_ISSUER = "https://kubernetes.default.svc.cluster.local"
# The audit log on standard output.
STDOUT = "-"

app = typer.Typer(
    help="A Kubernetes API server in one process.", invoke_without_command=True, rich_markup_mode=None
)


def parse_folder(text: str) -> Path:
    """Absolute, because it is shown to users in other directories."""
    return Path(text).expanduser().absolute()


def parse_host(text: str) -> str:
    from ipaddress import ip_address

    from podlife.api.names import check_dns_subdomain

    try:
        ip_address(text)
    except ValueError:
        if check_dns_subdomain(text.lower().removeprefix("*.")):
            raise typer.BadParameter(f"invalid host name or IP address {text!r}") from None
    return text


class AdmissionPlugin(StrEnum):
    """Plug-ins that are off unless enabled: this one needs controllers beside the server."""

    SERVICE_ACCOUNT = "ServiceAccount"


def parse_advertised(text: str) -> str:
    """An address that pods can reach. Also called with the default, which is empty."""
    from podlife.apiserver.settings import is_local

    if text and is_local(text):
        raise typer.BadParameter(f"invalid IP address {text!r}: expected one that pods can reach")
    return text


AdvertiseOption = Annotated[
    str,
    option(
        "ADDRESS",
        "Address at which pods reach the server, which listens there, too.",
        parser=parse_advertised,
        show_default="the one it listens on",
    ),
]

DataOption = Annotated[
    Path | None, option("DIR", "Data folder; default: ~/.local/share/podlife.", "--data", parser=parse_folder)
]


def parse_path(text: str) -> str:
    """Absolute, because the server may run in another directory. Also called with the default, which is empty."""
    return text if text in ("", STDOUT) else str(Path(text).expanduser().absolute())


EventTtlOption = Annotated[
    float,
    duration_option(
        "Amount of time to retain events; 0 keeps them.",
        "1h",
        parser=not_negative("duration must not be negative"),
    ),
]
LogPathOption = Annotated[
    str,
    option(
        "FILE",
        "Write an audit log to this file; '-' is standard output.",
        parser=parse_path,
        show_default=False,
    ),
]
PolicyFileOption = Annotated[
    str,
    option(
        "FILE",
        "Audit policy file (audit.k8s.io/v1): which requests to record, and at which level.",
        parser=parse_path,
        show_default="writes only",
    ),
]
MaxSizeOption = Annotated[
    int, number_option("Size at which the audit log is rotated.", 1, 1 << 20, metavar="MB")
]
MaxAgeOption = Annotated[
    int, number_option("Days to keep rotated audit logs; 0 for no limit.", 0, metavar="N")
]
MaxBackupOption = Annotated[int, number_option("Rotated audit logs to keep; 0 for all.", 0, metavar="N")]


@app.callback()
def apiserver(  # noqa: PLR0913, PLR0917 - one parameter per option
    context: typer.Context,
    data: DataOption = None,
    memory: Annotated[
        bool, typer.Option("--memory", help="Keep objects in memory only; they are lost on exit.")
    ] = False,
    port: Annotated[
        int, number_option("Port to listen on; 0 for any free one.", 0, 65_535, metavar="PORT")
    ] = 6443,
    bind: Annotated[str, option("ADDRESS", "Address to listen on.")] = "127.0.0.1",
    name: Annotated[
        list[str] | None,
        option("HOST", "Additional host name or address of this server (repeatable).", parser=parse_host),
    ] = None,
    advertise_address: AdvertiseOption = "",
    service_account_issuer: Annotated[
        str, option("URL", "Issuer of service account tokens.", show_default=DEFAULT_ISSUER)
    ] = "",
    service_account_signing_key_file: Annotated[
        str,
        option(
            "FILE",
            "Private key that signs service account tokens.",
            parser=parse_path,
            show_default="one in the data folder",
        ),
    ] = "",
    service_account_key_file: Annotated[
        list[str] | None,
        option("FILE", "Further keys that verify service account tokens (repeatable).", parser=parse_path),
    ] = None,
    enable_admission_plugins: Annotated[
        list[AdmissionPlugin] | None,
        option("NAME", "Admission plug-in to enable, which is off by default: ServiceAccount."),
    ] = None,
    default_not_ready_toleration_seconds: Annotated[
        int, number_option("How long pods stay on a node that is not ready.", 0, metavar="N")
    ] = 300,
    default_unreachable_toleration_seconds: Annotated[
        int, number_option("How long pods stay on a node that is unreachable.", 0, metavar="N")
    ] = 300,
    namespace_cleanup: Annotated[
        bool, typer.Option(help="Empty deleted namespaces; not needed beside kube-controller-manager.")
    ] = True,
    event_ttl: EventTtlOption = 3600.0,
    audit_log_path: LogPathOption = "",
    audit_policy_file: PolicyFileOption = "",
    audit_log_maxsize: MaxSizeOption = 100,
    audit_log_maxage: MaxAgeOption = 0,
    audit_log_maxbackup: MaxBackupOption = 10,
) -> None:
    """Serve the Kubernetes API for kubectl and any client library, on this machine only."""
    if context.invoked_subcommand is not None:
        _refuse_options_of_the_server(context)
        return
    check_audit(audit_log_path, audit_policy_file)
    from podlife.apiserver.settings import ApiServerSettings
    from podlife.cli.apiserver_exec import serve

    settings = ApiServerSettings(
        data=data or (None if memory else _default_folder()),
        in_memory=memory,
        bind=bind,
        port=port,
        names=tuple(name or ()),
        advertise_address=advertise_address,
        service_account_issuer=service_account_issuer,
        service_account_signing_key_file=service_account_signing_key_file,
        service_account_key_files=tuple(service_account_key_file or ()),
        needs_accounts=bool(enable_admission_plugins),
        not_ready_toleration_seconds=default_not_ready_toleration_seconds,
        unreachable_toleration_seconds=default_unreachable_toleration_seconds,
        cleans_namespaces=namespace_cleanup,
        event_ttl_seconds=event_ttl,
        audit_log_path=audit_log_path,
        audit_policy_file=audit_policy_file,
        audit_log_max_mb=audit_log_maxsize,
        audit_log_max_days=audit_log_maxage,
        audit_log_max_backups=audit_log_maxbackup,
    )
    serve(settings)


def check_audit(log_path: str | None, policy_file: str) -> None:
    """`log_path` is None for the default. Raises BadParameter or ConfigError before anything is started."""
    if not policy_file:
        return
    if log_path == "":
        raise typer.BadParameter(
            "--audit-policy-file needs --audit-log-path: without a log nothing is recorded"
        )
    from podlife.apiserver.audit import load_policy

    load_policy(Path(policy_file))


def _refuse_options_of_the_server(context: typer.Context) -> None:
    """Subcommands have their own flags; ignoring --data, for example, would use the wrong folder."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name != "DEFAULT":
            option, command = parameter.opts[0], context.invoked_subcommand
            context.fail(f"{option} before {command!r} is not for {command!r}: its flags must follow it")


@app.command(short_help="Create a kubeconfig for a node or a user, or show the admin's.")
def kubeconfig(
    data: DataOption = None,
    node: Annotated[str | None, option("NAME", "For the node of this name.")] = None,
    user: Annotated[str | None, option("NAME", "For a user of this name.")] = None,
    group: Annotated[list[str] | None, option("NAME", "A group of the user (repeatable).")] = None,
    output: Annotated[Path | None, option("FILE", "Write to this file.", "-o", "--output")] = None,
) -> None:
    """Create a kubeconfig with a new client certificate for a node or a user; without either, show the admin's."""
    from podlife.daemons.kubeconfigs import make_kubeconfig

    if node is not None and (user is not None or group):
        raise typer.BadParameter("--user and --group cannot be combined with --node")
    text = make_kubeconfig(data or _default_folder(), node=node, user=user, groups=tuple(group or ()))
    if output is None:
        sys.stdout.write(text)
        return
    from podlife.pki import write_private

    try:
        write_private(output, text.encode())
    except OSError as error:
        raise ConfigError(f"cannot write {output}: {error.strerror}") from error


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")],
    data: DataOption = None,
) -> None:
    """Copy the objects into one file, even while the server runs.

    It has no certificates and tokens: the file gives access to the objects, not to the server's identity."""
    from podlife.apiserver.storage import maintenance

    report = maintenance.backup(data or _default_folder(), target)
    print(f"{counted(report.records, 'object')} at revision {report.revision} written to {report.path}.")


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A file written by `backup`.")],
    data: DataOption = None,
) -> None:
    """Fill a data folder from a backup: an empty one, or one whose store is damaged or lost.

    A damaged store is moved aside. Certificates and tokens of the folder stay; in a new folder the server creates its
    own, and kubeconfigs must be created again."""
    from podlife.apiserver.storage import maintenance

    report = maintenance.restore(source, data or _default_folder())
    restored = counted(report.records, "object")
    print(f"{restored} restored to {report.folder} at revision {report.revision}.")
    if report.remains is not None:
        print(f"The previous store was moved to {report.remains}.")


@app.command()
def salvage(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The backup to write.")],
    data: DataOption = None,
) -> None:
    """Write a backup of the intact objects of a damaged store, for `restore`.

    Every lost change is a line on standard error. For a server started with the result, those objects do not exist:
    nodes stop their pods, controllers delete their dependents."""
    from podlife.apiserver.storage.maintenance import salvage as save

    folder = data or _default_folder()
    report = save(folder, target)
    for each in report.lost:
        print(each, file=sys.stderr)
    print(
        f"{counted(report.records, 'object')} saved to {report.path}, {counted(len(report.lost), 'change')} lost. "
        f"`podlife apiserver restore {report.path} --data {folder}` replaces the damaged store with them."
    )


@app.command()
def check(data: DataOption = None) -> None:
    """Check the integrity of the stored objects.

    The exit code is 1 if it fails; every problem is a line on standard error."""
    from podlife.apiserver.storage import maintenance

    report = maintenance.check(data or _default_folder())
    for problem in report.problems:
        print(problem, file=sys.stderr)
    if not report.is_sound:
        raise ConfigError(f"{report.path} is not sound: replace it with `podlife apiserver restore FILE`")
    print(f"{report.path} is sound: {counted(report.records, 'object')} at revision {report.revision}.")


def _default_folder() -> Path:
    from podlife.daemons.xdg import default_data_dir

    return default_data_dir()
