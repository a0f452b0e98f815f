"""Credential providers: static tokens, token files, basic auth, exec plugins, legacy auth providers.

`current()` is called before every request and is cheap while nothing has changed. After a 401, `renew(refused)`
reports whether another attempt may use a different credential. No `repr` shows a secret.

An exec plugin (client.authentication.k8s.io/v1 and v1beta1) runs if there is no credential, if it has expired or if a
server has refused it; concurrent requests share one run. It has a timeout, and every failure is one line that names
the plugin.
"""

from __future__ import annotations

import asyncio
import base64
import importlib
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from podlife.api.codec import decode_object, parse_time
from podlife.client.connection import (
    Auth,
    BasicAuth,
    ExecAuth,
    ProviderAuth,
    TokenAuth,
    TokenFileAuth,
    read_file,
)
from podlife.clock import Clock, SystemClock
from podlife.errors import ConfigError

# client-go's interval: a projected service account token is renewed long before it expires.
_TOKEN_FILE_SECONDS = 60.0
# A credential must not expire while the request is in flight.
_LEEWAY = timedelta(seconds=5)
# Interactive logins get this many times the timeout.
_PATIENCE_WITH_PEOPLE = 10


@dataclass(frozen=True, slots=True)
class Credential:
    """Authorization header and client certificate of a request; both are optional."""

    authorization: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)


class Credentials(Protocol):
    async def current(self) -> Credential:
        """The current credential; raises ConfigError if there is none."""
        ...

    async def renew(self, refused: Credential) -> bool:
        """Drop the credential that a server has refused; returns whether the next one may differ."""
        ...


def credentials_for(auth: Auth | None, clock: Clock | None = None) -> Credentials:
    match auth:
        case None:
            return _Fixed(Credential())
        case TokenAuth(token):
            return _Fixed(_bearer(token, "the token"))
        case BasicAuth(username, password):
            both = base64.b64encode(f"{username}:{password}".encode()).decode()
            return _Fixed(Credential(f"Basic {both}"))
        case TokenFileAuth():
            return _TokenFile(auth)
        case ExecAuth():
            return _Login(lambda: _log_in_by_plugin(auth), clock or SystemClock())
        case ProviderAuth():
            return _Login(lambda: _log_in_by_library(auth), clock or SystemClock())


def _bearer(token: str, origin: str) -> Credential:
    if not (token.isascii() and token.isprintable()):
        raise ConfigError(f"{origin} contains characters that are invalid in a token; replace it")
    return Credential(f"Bearer {token}")


class _Fixed:
    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    async def current(self) -> Credential:
        return self._credential

    async def renew(self, refused: Credential) -> bool:
        return False


class _TokenFile:
    def __init__(self, auth: TokenFileAuth) -> None:
        self._auth = auth
        self._credential: Credential | None = None
        self._read_at = 0.0

    async def current(self) -> Credential:
        now = asyncio.get_running_loop().time()
        if self._credential is None or now - self._read_at >= _TOKEN_FILE_SECONDS:
            try:
                self._credential = self._read()
            except ConfigError:
                # Keep the current token while the file is being replaced.
                if self._credential is None:
                    raise
            self._read_at = now
        return self._credential

    def _read(self) -> Credential:
        token = read_file(self._auth.path, "the token file").decode(errors="replace").strip()
        if not token:
            raise ConfigError(f"the token file {self._auth.path} is empty; check what writes it")
        return _bearer(token, f"the token file {self._auth.path}")

    async def renew(self, refused: Credential) -> bool:
        if self._credential == refused:
            self._credential = None
        return await self.current() != refused


@dataclass(frozen=True, slots=True)
class _Issued:
    credential: Credential
    expires_at: datetime | None = None


class _Login:
    """A credential that is issued by `log_in`; concurrent requests share one login."""

    def __init__(self, log_in: Callable[[], Awaitable[_Issued]], clock: Clock) -> None:
        self._log_in = log_in
        self._clock = clock
        self._issued: _Issued | None = None
        self._lock = asyncio.Lock()

    async def current(self) -> Credential:
        issued = self._issued
        if issued is not None and self._is_fresh(issued):
            return issued.credential
        async with self._lock:
            if self._issued is None or not self._is_fresh(self._issued):
                self._issued = await self._log_in()
            return self._issued.credential

    def _is_fresh(self, issued: _Issued) -> bool:
        return issued.expires_at is None or self._clock.now() + _LEEWAY < issued.expires_at

    async def renew(self, refused: Credential) -> bool:
        async with self._lock:
            # Another request may have renewed it already.
            if self._issued is not None and self._issued.credential == refused:
                self._issued = None
        return await self.current() != refused


async def _log_in_by_library(auth: ProviderAuth) -> _Issued:
    """Log in through kubernetes_asyncio, which supports legacy auth providers."""
    what = f"{auth.origin}: auth-provider {auth.name!r}"
    try:
        client = importlib.import_module("kubernetes_asyncio.client")
        config = importlib.import_module("kubernetes_asyncio.config")
    except ImportError:
        raise ConfigError(
            f"{what} needs kubernetes_asyncio, which is not installed: install podlife[kubeconfig]"
        ) from None
    configuration = client.Configuration()
    try:
        await config.load_kube_config_from_dict(
            dict(auth.kubeconfig), context=auth.context, client_configuration=configuration
        )
    except Exception as error:  # noqa: BLE001 - the library may raise anything; the user gets one line
        raise ConfigError(f"{what} failed: {' '.join(str(error).split())[:300]}; log in again") from None
    token = configuration.api_key.get("BearerToken") or configuration.api_key.get("authorization")
    if not token:
        raise ConfigError(f"{what} returned no token; log in again, or use an exec plugin")
    return _Issued(Credential(token if " " in token else f"Bearer {token}"))


async def _log_in_by_plugin(auth: ExecAuth) -> _Issued:
    return _parse_credential(await _run_plugin(auth), auth)


def _parse_credential(output: bytes, auth: ExecAuth) -> _Issued:
    """Parse the plugin's output; raises ConfigError, without secrets."""
    try:
        printed = decode_object(output)
    except ValueError:
        raise ConfigError(
            f"{auth.origin}: {auth.command} did not print an ExecCredential; run it by hand"
        ) from None
    version, status = printed.get("apiVersion"), printed.get("status")
    if printed.get("kind") != "ExecCredential" or version != auth.api_version:
        raise ConfigError(
            f"{auth.origin}: {auth.command} printed {version} {printed.get('kind')}, not {auth.api_version} "
            "ExecCredential; make both the same"
        )
    status = status if isinstance(status, dict) else {}
    token, certificate, key = (
        _text(status, name) for name in ("token", "clientCertificateData", "clientKeyData")
    )
    if bool(certificate) != bool(key) or not (token or certificate):
        raise ConfigError(
            f"{auth.origin}: {auth.command} returned neither a token nor a certificate with its key; log in again"
        )
    expires = _text(status, "expirationTimestamp")
    try:
        expires_at = parse_time(expires) if expires else None
    except ValueError:
        raise ConfigError(
            f"{auth.origin}: {auth.command} returned an invalid expirationTimestamp {expires!r}"
        ) from None
    credential = Credential(f"Bearer {token}" if token else "", certificate.encode(), key.encode())
    return _Issued(credential, expires_at)


def _text(values: dict[str, Any], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""


def _is_interactive(auth: ExecAuth) -> bool:
    has_terminal = sys.stdin is not None and sys.stdin.isatty()
    if auth.interactive_mode == "Always" and not has_terminal:
        raise ConfigError(f"{auth.origin}: {auth.command} requires interaction; run this in a terminal")
    return has_terminal and auth.interactive_mode != "Never"


async def _run_plugin(auth: ExecAuth) -> bytes:
    """Run the plugin and return its output; raises ConfigError."""
    interactive = _is_interactive(auth)
    spec: dict[str, Any] = {"interactive": interactive}
    if auth.cluster is not None:
        spec["cluster"] = auth.cluster
    information = {"kind": "ExecCredential", "apiVersion": auth.api_version, "spec": spec}
    environment = {**os.environ, **dict(auth.environment), "KUBERNETES_EXEC_INFO": json.dumps(information)}
    try:
        process = await asyncio.create_subprocess_exec(
            auth.command,
            *auth.arguments,
            env=environment,
            stdin=None if interactive else DEVNULL,
            stdout=PIPE,
            # An interactive plugin must be able to show its prompt.
            stderr=None if interactive else PIPE,
            # With its own process group it can be killed with its children, but it has no terminal.
            start_new_session=not interactive,
        )
    except OSError as error:
        hint = auth.install_hint.strip().splitlines()[0] if auth.install_hint.strip() else "check the command"
        raise ConfigError(
            f"{auth.origin}: cannot run {auth.command}: {error.strerror or error}; {hint}"
        ) from None
    seconds = auth.timeout_seconds * (_PATIENCE_WITH_PEOPLE if interactive else 1)
    try:
        async with asyncio.timeout(seconds):
            output, complaint = await process.communicate()
    except TimeoutError:
        raise ConfigError(
            f"{auth.origin}: {auth.command} did not end within {seconds:g} s; run it by hand"
        ) from None
    finally:
        await _end(process, with_group=not interactive)
    if process.returncode:
        lines = (complaint or b"").decode(errors="replace").strip().splitlines()
        reason = f": {lines[-1][:300]}" if lines else ""
        raise ConfigError(
            f"{auth.origin}: {auth.command} failed with {process.returncode}{reason}; log in again"
        )
    return output


async def _end(process: Process, *, with_group: bool) -> None:
    if process.returncode is not None:
        return
    try:
        if with_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except ProcessLookupError:
        return
    try:
        async with asyncio.timeout(5):
            await process.wait()
    except TimeoutError:
        pass
