"""Credential providers: static tokens, token files, basic auth, exec plugins, legacy auth providers.

`current()` is called before every request and is cheap while nothing has changed. After a 401, `renew(refused)`
reports whether another attempt may use a different credential. No `repr` shows a secret.
"""

from __future__ import annotations

import asyncio
import base64
import importlib

from podlife.client.connection import (
    Auth,
    BasicAuth,
    ExecAuth,
    ProviderAuth,
    TokenAuth,
    TokenFileAuth,
    read_file,
)
from podlife.client.credential import Credential, Credentials
from podlife.client.exec_plugin import ExecCredentials
from podlife.clock import Clock, SystemClock
from podlife.errors import ConfigError

# A projected service account token is renewed long before it ends; client-go looks as often.
_TOKEN_FILE_SECONDS = 60.0


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
            return ExecCredentials(auth, clock or SystemClock())
        case ProviderAuth():
            return _Provider(auth)


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
                # While the file is being replaced the token we have is still the best there is.
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


class _Provider:
    """kubernetes_asyncio logs in; podlife does not know these logins itself."""

    def __init__(self, auth: ProviderAuth) -> None:
        self._auth = auth
        self._credential: Credential | None = None
        self._lock = asyncio.Lock()

    async def current(self) -> Credential:
        async with self._lock:
            if self._credential is None:
                self._credential = await self._log_in()
            return self._credential

    async def renew(self, refused: Credential) -> bool:
        async with self._lock:
            if self._credential == refused:
                self._credential = None
        return await self.current() != refused

    async def _log_in(self) -> Credential:
        what = f"{self._auth.origin}: auth-provider {self._auth.name!r}"
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
                dict(self._auth.kubeconfig), context=self._auth.context, client_configuration=configuration
            )
        except Exception as error:  # noqa: BLE001 - a foreign loader raises what it likes; the user gets one line
            raise ConfigError(f"{what} failed: {' '.join(str(error).split())[:300]}; log in again") from None
        token = configuration.api_key.get("BearerToken") or configuration.api_key.get("authorization")
        if not token:
            raise ConfigError(f"{what} gave no token; log in again, or use an exec plugin")
        return Credential(token if " " in token else f"Bearer {token}")
