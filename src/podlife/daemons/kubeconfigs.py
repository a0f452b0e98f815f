"""Kubeconfigs for nodes and users of a data directory, signed with its CA without a request to the server."""

from __future__ import annotations

from pathlib import Path

from podlife.api.names import check_dns_subdomain
from podlife.clock import SystemClock
from podlife.errors import ConfigError
from podlife.pki import CertificateAuthority, ClusterAccess, Subject, format_kubeconfig, node_subject


def make_kubeconfig(
    folder: Path, *, node: str | None = None, user: str | None = None, groups: tuple[str, ...] = ()
) -> str:
    """The text of a kubeconfig for a node or a user, or the admin's if neither is given. Raises ConfigError.

    An empty name is invalid: it never stands for the admin."""
    admin = _read_admin(folder)
    if node is not None:
        if problems := check_dns_subdomain(node):
            raise ConfigError(f"invalid node name {node!r}: {problems[0]}")
        subject = node_subject(node)
    elif user is not None:
        subject = _user_subject(user, groups)
    elif groups:
        raise ConfigError("--group requires --user")
    else:
        return admin
    pki = CertificateAuthority(folder / "pki", SystemClock())
    credential = pki.issue(subject)
    # The CA file is written again if it is missing or damaged.
    pki.ensure_authority()
    access = ClusterAccess(
        _server_in(admin), pki.authority_file.read_bytes(), subject.common_name, credential=credential
    )
    return format_kubeconfig(access)


def _read_admin(folder: Path) -> str:
    path = folder / "admin.kubeconfig"
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(
            f"{folder} holds no API server's data: start one with `podlife apiserver --data {folder}` first"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is damaged: start the API server, which writes it again") from None


def _user_subject(user: str, groups: tuple[str, ...]) -> Subject:
    for what, name in (("user", user), *(("group", each) for each in groups)):
        if not name.strip():
            raise ConfigError(f"invalid {what} name {name!r}: it is empty")
    return Subject(user, groups)


def _server_in(kubeconfig: str) -> str:
    import yaml

    try:
        return str(yaml.safe_load(kubeconfig)["clusters"][0]["cluster"]["server"])
    except (yaml.YAMLError, ValueError, OverflowError, LookupError, TypeError):
        raise ConfigError(
            "admin.kubeconfig is damaged: start the API server, which writes it again"
        ) from None
