"""The flags of the audit log, under kube-apiserver's names, for `podlife apiserver` and `podlife up`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from podlife.cli.options import whole_number

STDOUT = "-"


def parse_path(text: str) -> str:
    """Absolute: the server may run in another directory. Also called with the default, which is empty."""
    return text if text in ("", STDOUT) else str(Path(text).expanduser().absolute())


def _bound(help_: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(metavar="N", parser=whole_number(0), help=help_)
    return option


LogPathOption = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        parser=parse_path,
        show_default=False,
        help="Write an audit log to this file; '-' is standard output.",
    ),
]
PolicyFileOption = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        parser=parse_path,
        show_default="writes only",
        help="Audit policy (audit.k8s.io/v1): which requests are recorded, and how much of them.",
    ),
]
MaxSizeOption = Annotated[
    int,
    typer.Option(
        metavar="MB", parser=whole_number(1, 1 << 20), help="Size at which the audit log is rotated."
    ),
]
MaxAgeOption = Annotated[int, _bound("Days to keep rotated audit logs; 0 for any time.")]
MaxBackupOption = Annotated[int, _bound("Rotated audit logs to keep; 0 for all.")]


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
