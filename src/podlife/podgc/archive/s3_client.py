"""A client for one bucket of S3-compatible storage: put, get and list objects, with signatures, limits and retries.

Endpoint and credentials come from the usual AWS environment variables. Redirects are not followed but reported as
errors. A `put` is idempotent and may be retried.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from podlife.client.retry import backoff_seconds
from podlife.clock import Clock
from podlife.errors import ConfigError
from podlife.podgc.archive.archive import ArchiveError
from podlife.podgc.archive.sigv4 import Keys, Signable, encoded_path, encoded_query, signed_headers

if TYPE_CHECKING:
    import aiohttp

_TRIES = 3
_MOST_ANSWER_BYTES = 64 << 20
_MOST_ERROR_BYTES = 64 << 10
_PASSING = (429, 500, 502, 503, 504)
_CODE = re.compile(rb"<Code>([A-Za-z0-9.]{1,80})</Code>")


class MissingError(ArchiveError):
    """The object does not exist, or these credentials may not see it; a bucket may answer both in the same way."""


@dataclass(frozen=True, slots=True)
class S3Settings:
    keys: Keys
    region: str = "us-east-1"
    # Empty for AWS.
    endpoint: str = ""
    certificate_authority: str = ""
    # Time limits for one attempt and for all of them.
    try_seconds: float = 15.0
    seconds: float = 30.0


def settings_from(environment: Mapping[str, str]) -> S3Settings:
    """Raises ConfigError if a variable is missing or invalid."""
    access, secret = (environment.get(name, "") for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    if not access or not secret:
        raise ConfigError(
            "an archive in a bucket needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: set both"
        )
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or ""
    _check_endpoint(endpoint)
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    if not re.fullmatch(r"[a-zA-Z0-9-]+", region):
        raise ConfigError(f"invalid AWS_REGION {region!r}: expected a region such as eu-central-1")
    keys = Keys(access, secret, environment.get("AWS_SESSION_TOKEN", ""))
    return S3Settings(keys, region, endpoint.rstrip("/"), environment.get("AWS_CA_BUNDLE", ""))


def _why_not(error: Exception) -> str:
    # The library's message mentions ssl:default even without TLS.
    if isinstance(getattr(error, "os_error", error), ConnectionRefusedError):
        return "connection refused"
    return " ".join(str(error).split()) or type(error).__name__


def _check_endpoint(endpoint: str) -> None:
    try:
        parts = urlsplit(endpoint)
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username
    if endpoint and not (is_address and parts.path in ("", "/") and not parts.query):
        raise ConfigError(f"invalid AWS_ENDPOINT_URL {endpoint!r}: expected https://HOST:PORT")


class S3Client:
    """Close it."""

    def __init__(self, settings: S3Settings, bucket: str, *, clock: Clock) -> None:
        self.bucket = bucket
        self._settings = settings
        self._clock = clock
        self._tls = _tls(settings)
        self._session: aiohttp.ClientSession | None = None
        self._base, self._root = bucket_address(settings, bucket)

    async def put(self, key: str, data: bytes) -> None:
        headers = {"content-type": "application/gzip"}
        await self._send(Signable("PUT", f"{self._root}/{key}", headers=headers, body=data))

    async def get(self, key: str, *, most_bytes: int = 0) -> bytes:
        """The object, or its beginning."""
        headers = {"range": f"bytes=0-{most_bytes - 1}"} if most_bytes else {}
        return await self._send(Signable("GET", f"{self._root}/{key}", headers=headers))

    async def list_page(self, prefix: str, token: str) -> bytes:
        query = {"list-type": "2", "prefix": prefix, **({"continuation-token": token} if token else {})}
        return await self._send(Signable("GET", self._root or "/", query))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _send(self, request: Signable) -> bytes:
        """The body of a successful answer. Raises ArchiveError."""
        trouble = ""
        try:
            async with asyncio.timeout(self._settings.seconds):
                for failures in range(1, _TRIES + 1):
                    trouble, body = await self._try(request)
                    if not trouble:
                        return body
                    if failures < _TRIES:
                        await asyncio.sleep(backoff_seconds(failures))
        except TimeoutError:
            trouble = trouble or f"it has not answered within {self._settings.seconds:g} s"
        raise self._error(trouble)

    async def _try(self, request: Signable) -> tuple[str, bytes]:
        """A transient error, or the body. Raises ArchiveError for permanent errors."""
        import aiohttp
        from yarl import URL

        host = urlsplit(self._base).netloc
        signable = Signable(
            request.method, request.path, request.query, {**request.headers, "host": host}, request.body
        )
        settings = self._settings
        headers = signed_headers(signable, settings.keys, settings.region, self._clock.now())
        query = encoded_query(request.query)
        url = URL(f"{self._base}{encoded_path(request.path)}{'?' if query else ''}{query}", encoded=True)
        try:
            async with (
                asyncio.timeout(settings.try_seconds),
                self._connected().request(
                    request.method, url, data=request.body or None, headers=headers, allow_redirects=False
                ) as answer,
            ):
                return await self._judged(answer)
        except TimeoutError:
            return f"it has not answered within {settings.try_seconds:g} s", b""
        except (aiohttp.ClientError, OSError) as error:
            return f"it cannot be reached: {_why_not(error)}; check {self._base} (AWS_ENDPOINT_URL)", b""

    async def _judged(self, answer: aiohttp.ClientResponse) -> tuple[str, bytes]:
        if 200 <= answer.status < 300:
            body = await answer.content.read(_MOST_ANSWER_BYTES + 1)
            while len(body) <= _MOST_ANSWER_BYTES and (piece := await answer.content.readany()):
                body += piece
            if len(body) > _MOST_ANSWER_BYTES:
                raise self._error("its answer is larger than any entry")
            if answer.method == "PUT" and "ETag" not in answer.headers:
                # A web server that accepts everything would not have stored it.
                raise self._error("it does not answer as S3 does: check AWS_ENDPOINT_URL")
            return "", body
        code = _CODE.search(await answer.content.read(_MOST_ERROR_BYTES))
        said = f"{answer.status} {code[1].decode() if code else answer.reason or ''}".strip()
        if answer.status in _PASSING:
            return f"it answers {said}", b""
        error = self._error(f"it answers {said}{_advice(answer)}")
        raise MissingError(str(error)) if answer.status in (403, 404) else error

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            connector = aiohttp.TCPConnector(ssl=self._tls, limit=16)
            # An entry is compressed already and must arrive as stored.
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers={"Accept-Encoding": "identity"},
                auto_decompress=False,
                skip_auto_headers=("Content-Type", "User-Agent"),
            )
        return self._session

    def _error(self, why: str) -> ArchiveError:
        return ArchiveError(f"the archive s3://{self.bucket} cannot be used: {why}")


def _advice(answer: aiohttp.ClientResponse) -> str:
    if answer.status in (301, 302, 307, 308):
        region = answer.headers.get("x-amz-bucket-region", "")
        if re.fullmatch(r"[a-z0-9-]{1,40}", region):
            return f": the bucket is in the region {region}, set AWS_REGION"
        return ": it is somewhere else, check AWS_REGION and AWS_ENDPOINT_URL"
    if answer.status == 403:
        return ": check the keys, and that they may put, get and list there"
    return ": check its name, AWS_REGION and AWS_ENDPOINT_URL" if answer.status == 404 else ""


def bucket_address(settings: S3Settings, bucket: str) -> tuple[str, str]:
    """Base URL and the path of the bucket: virtual-hosted style on AWS, where the certificate covers one label; path
    style elsewhere, which every server supports."""
    if settings.endpoint:
        return settings.endpoint, f"/{bucket}"
    if "." in bucket:
        return f"https://s3.{settings.region}.amazonaws.com", f"/{bucket}"
    return f"https://{bucket}.s3.{settings.region}.amazonaws.com", ""


def _tls(settings: S3Settings) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=settings.certificate_authority or None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"cannot read AWS_CA_BUNDLE {settings.certificate_authority!r}: {error}") from None
