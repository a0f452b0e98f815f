"""Exec credential plugins (client.authentication.k8s.io/v1 and v1beta1).

The plugin runs if there is no credential, if it has expired or if a server has refused it; concurrent requests share
one run. It has a timeout, and every failure is one line that names the plugin.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from podlife.api.codec import decode_object, parse_time
from podlife.client.connection import ExecAuth
from podlife.client.credential import Credential
from podlife.clock import Clock
from podlife.errors import ConfigError

# A credential that ends while the request is on its way is of no use.
_LEEWAY = timedelta(seconds=5)
# Interactive logins get this many times the timeout.
_PATIENCE_WITH_PEOPLE = 10


@dataclass(frozen=True, slots=True)
class _Issued:
    credential: Credential
    expires_at: datetime | None = field(default=None)


class ExecCredentials:
    def __init__(self, auth: ExecAuth, clock: Clock) -> None:
        self._auth = auth
        self._clock = clock
        self._issued: _Issued | None = None
        self._lock = asyncio.Lock()

    async def current(self) -> Credential:
        issued = self._issued
        if issued is not None and self._is_fresh(issued):
            return issued.credential
        async with self._lock:
            if self._issued is None or not self._is_fresh(self._issued):
                self._issued = parse_credential(await run_plugin(self._auth), self._auth)
            return self._issued.credential

    def _is_fresh(self, issued: _Issued) -> bool:
        return issued.expires_at is None or self._clock.now() + _LEEWAY < issued.expires_at

    async def renew(self, refused: Credential) -> bool:
        async with self._lock:
            # Another request may have renewed it already.
            if self._issued is not None and self._issued.credential == refused:
                self._issued = None
        return await self.current() != refused


def parse_credential(output: bytes, auth: ExecAuth) -> _Issued:
    """What the program has printed, as a credential; raises ConfigError, never with its secrets."""
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
            f"{auth.origin}: {auth.command} gave neither a token nor a certificate with its key; log in again"
        )
    expires = _text(status, "expirationTimestamp")
    try:
        expires_at = parse_time(expires) if expires else None
    except ValueError:
        raise ConfigError(
            f"{auth.origin}: {auth.command} gave a bad expirationTimestamp {expires!r}"
        ) from None
    credential = Credential(f"Bearer {token}" if token else "", certificate.encode(), key.encode())
    return _Issued(credential, expires_at)


def _text(values: dict[str, Any], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""


def _is_interactive(auth: ExecAuth) -> bool:
    has_terminal = sys.stdin is not None and sys.stdin.isatty()
    if auth.interactive_mode == "Always" and not has_terminal:
        raise ConfigError(f"{auth.origin}: {auth.command} must ask you something; run this in a terminal")
    return has_terminal and auth.interactive_mode != "Never"


async def run_plugin(auth: ExecAuth) -> bytes:
    """Run the program to its end and give what it has printed; raises ConfigError."""
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
            # A program that asks must be able to show its question.
            stderr=None if interactive else PIPE,
            # Alone in its group it can be ended with everything it has started; but then it has no terminal.
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
        said = f": {lines[-1][:300]}" if lines else ""
        raise ConfigError(
            f"{auth.origin}: {auth.command} failed with {process.returncode}{said}; log in again"
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
