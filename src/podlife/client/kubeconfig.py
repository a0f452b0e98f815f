"""Reads kubeconfig files, as kubectl does.

Several files are merged: the first definition of a name wins, and the first current-context. Paths are relative to
the file they are in. `docs/adr/0002-kubeconfig.md` says why this is not a library.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podlife.api.yaml_documents import safe_loader
from podlife.client.connection import (
    Auth,
    BasicAuth,
    Connection,
    ExecAuth,
    ProviderAuth,
    TokenAuth,
    TokenFileAuth,
    read_file,
)
from podlife.errors import ConfigError

_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


@dataclass(frozen=True, slots=True)
class _Entry:
    """One named cluster, user or context, and its file."""

    name: str
    values: Mapping[str, Any] = field(repr=False)
    path: Path

    @property
    def origin(self) -> str:
        return f"{self.name!r} in {self.path}"

    def text(self, key: str) -> str:
        value = self.values.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ConfigError(f"{self.origin}: {key} must be a string; put it in quotes")
        return value

    def data(self, key: str) -> bytes:
        """Inline data under `KEY-data`, in base64, or the file named by `KEY`; inline wins."""
        if inline := self.text(f"{key}-data"):
            try:
                return base64.b64decode(inline, validate=True)
            except (binascii.Error, ValueError):
                raise ConfigError(f"{self.origin}: {key}-data is not valid base64; encode it again") from None
        path = self.text(key)
        return read_file(self.path.parent / path, f"{key} of {self.origin}") if path else b""


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The merged content of one or more files."""

    clusters: Mapping[str, _Entry]
    users: Mapping[str, _Entry]
    contexts: Mapping[str, _Entry]
    current_context: str
    files: tuple[Path, ...]

    @classmethod
    def find(cls, path: str, environment: Mapping[str, str]) -> Kubeconfig | None:
        """Read the file of the flag, those of KUBECONFIG, or ~/.kube/config; None if none of them exists.

        The file of the flag must exist; missing ones of KUBECONFIG are skipped."""
        if path:
            return cls.read(Path(path).expanduser())
        if listed := environment.get("KUBECONFIG", ""):
            paths = [Path(item).expanduser() for item in listed.split(os.pathsep) if item]
        else:
            home = environment.get("HOME", "")
            paths = [Path(home) / ".kube" / "config"] if home else []
        present = [item for item in dict.fromkeys(paths) if os.access(item, os.F_OK)]
        return cls.read(*present) if present else None

    @classmethod
    def read(cls, *paths: Path) -> Kubeconfig:
        sections: dict[str, dict[str, _Entry]] = {"clusters": {}, "users": {}, "contexts": {}}
        current = ""
        for path in paths:
            document = _read_yaml(path)
            current = current or str(document.get("current-context") or "")
            for section, entries in sections.items():
                for entry in _entries(document, section, path):
                    entries.setdefault(entry.name, entry)
        return cls(**sections, current_context=current, files=tuple(paths))

    def connection(
        self, context: str = "", *, server: str = "", cluster: str = "", user: str = ""
    ) -> Connection:
        """The connection of a context, by default the current one. `cluster` and `user` override the entries it names,
        `server` the cluster's address."""
        name = context or self.current_context
        if not name and cluster:
            # With both, no context is needed.
            return self._connect(_Entry("", {}, self.files[0]), server, cluster, user)
        if not name:
            if server:
                return Connection(server)
            raise ConfigError(f"{self._files} has no current-context; run kubectl config use-context NAME")
        return self._connect(self._entry(self.contexts, name, "context"), server, cluster, user)

    def _connect(self, chosen: _Entry, server: str, cluster_name: str, user_name: str) -> Connection:
        name = chosen.name
        cluster = (
            self._entry(self.clusters, cluster_name, "cluster")
            if cluster_name
            else self._entry(self.clusters, chosen.text("cluster"), "cluster", of=name)
        )
        user = None
        if user_name:
            user = self._entry(self.users, user_name, "user")
        elif of_context := chosen.text("user"):
            user = self._entry(self.users, of_context, "user", of=name)
        return Connection(
            server=server or cluster.text("server"),
            namespace=chosen.text("namespace") or "default",
            auth=self._auth(user, cluster, name) if user else None,
            certificate_authority=cluster.data("certificate-authority"),
            client_certificate=user.data("client-certificate") if user else b"",
            client_key=user.data("client-key") if user else b"",
            is_insecure=bool(cluster.values.get("insecure-skip-tls-verify")),
            tls_server_name=cluster.text("tls-server-name"),
            proxy_url=cluster.text("proxy-url"),
            impersonation=_impersonation(user) if user else (),
            compression=not cluster.values.get("disable-compression"),
            origin=f"context {name!r} in {chosen.path}" if name else f"cluster {cluster.origin}",
        )

    @property
    def _files(self) -> str:
        return ", ".join(map(str, self.files))

    def _entry(self, section: Mapping[str, _Entry], name: str, noun: str, *, of: str = "") -> _Entry:
        if name in section:
            return section[name]
        behind = f", referenced by context {of!r}" if of else ""
        known = ", ".join(sorted(section)) or "none"
        raise ConfigError(f"{self._files} has no {noun} {name!r}{behind}; known: {known}")

    def _auth(self, user: _Entry, cluster: _Entry, context: str) -> Auth | None:
        if path := user.text("tokenFile"):
            return TokenFileAuth(user.path.parent / path)
        if token := user.text("token"):
            return TokenAuth(token)
        if username := user.text("username"):
            return BasicAuth(username, user.text("password"))
        if plugin := user.values.get("exec"):
            return _exec_auth(plugin, user, cluster)
        if provider := user.values.get("auth-provider"):
            name = provider.get("name", "") if isinstance(provider, dict) else ""
            return ProviderAuth(str(name), context, user.origin, self._as_dict(context))
        return None

    def _as_dict(self, context: str) -> dict[str, Any]:
        """The merged configuration as one document, for the loader of legacy auth providers."""
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": context,
            **{
                plural: [{"name": entry.name, singular: dict(entry.values)} for entry in section.values()]
                for plural, singular, section in (
                    ("clusters", "cluster", self.clusters),
                    ("users", "user", self.users),
                    ("contexts", "context", self.contexts),
                )
            },
        }


def _read_yaml(path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        document = yaml.load(read_file(path, "kubeconfig"), Loader=safe_loader())  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{path} is not YAML{where}; check the file") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path} is not a kubeconfig: expected a mapping; check the file")
    return document


def _entries(document: Mapping[str, Any], section: str, path: Path) -> list[_Entry]:
    entries = []
    for item in document.get(section) or ():
        values = item.get(section[:-1]) if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(values, dict | None) or not item.get("name"):
            raise ConfigError(
                f"{path}: an entry of {section} has no name or no {section[:-1]}; check the file"
            )
        entries.append(_Entry(str(item["name"]), values or {}, path))
    return entries


def _exec_auth(plugin: Any, user: _Entry, cluster: _Entry) -> ExecAuth:
    origin = f"the exec plugin of user {user.origin}"
    if not isinstance(plugin, dict) or not plugin.get("command"):
        raise ConfigError(f"{origin} has no command; add one")
    version = plugin.get("apiVersion", "")
    if version not in _EXEC_VERSIONS:
        raise ConfigError(
            f"{origin} has unsupported apiVersion {version!r}; use {' or '.join(_EXEC_VERSIONS)}"
        )
    command = str(plugin["command"])
    if os.sep in command:
        command = str(user.path.parent / command)
    return ExecAuth(
        command=command,
        api_version=version,
        origin=origin,
        arguments=tuple(str(argument) for argument in plugin.get("args") or ()),
        environment=tuple(
            (str(item.get("name")), str(item.get("value", ""))) for item in plugin.get("env") or ()
        ),
        interactive_mode=str(plugin.get("interactiveMode") or "IfAvailable"),
        install_hint=str(plugin.get("installHint") or ""),
        cluster=_cluster_information(cluster) if plugin.get("provideClusterInfo") else None,
    )


def _cluster_information(cluster: _Entry) -> dict[str, Any]:
    authority = cluster.data("certificate-authority")
    extensions = cluster.values.get("extensions") or ()
    config = next((e.get("extension") for e in extensions if e.get("name") == _EXEC_EXTENSION), None)
    information = {
        "server": cluster.text("server"),
        "tls-server-name": cluster.text("tls-server-name"),
        "insecure-skip-tls-verify": bool(cluster.values.get("insecure-skip-tls-verify")),
        "certificate-authority-data": base64.b64encode(authority).decode(),
        "proxy-url": cluster.text("proxy-url"),
        "config": config,
    }
    return {key: value for key, value in information.items() if value}


_EXEC_EXTENSION = "client.authentication.k8s.io/exec"


def _impersonation(user: _Entry) -> tuple[tuple[str, str], ...]:
    headers = []
    if name := user.text("as"):
        headers.append(("Impersonate-User", name))
    if uid := user.text("as-uid"):
        headers.append(("Impersonate-Uid", uid))
    headers += [("Impersonate-Group", str(group)) for group in user.values.get("as-groups") or ()]
    for key, values in (user.values.get("as-user-extra") or {}).items():
        headers += [(f"Impersonate-Extra-{key}", str(value)) for value in values or ()]
    return tuple(headers)
