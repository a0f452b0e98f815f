"""A client for one bucket of S3-compatible storage: put, get and list objects; needs `podlife[s3]`.

aiobotocore finds the credentials (keys, profiles, SSO, roles of service accounts and of machines), signs, sends and
retries, as configured by the environment and the files that AWS's own tools read.

Guarantees:
- A call returns within `seconds`, or raises ArchiveError with one line that does not depend on the object.
- The size of a response in memory is bounded.
- Redirects are not followed: an entry is only sent to the endpoint. Buckets of other AWS regions are found.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from podlife.api.codec import Object
from podlife.errors import ConfigError
from podlife.podgc.archive.archive import ArchiveError

try:
    from aiobotocore.config import AioConfig
    from aiobotocore.httpsession import AIOHTTPSession
    from aiobotocore.session import AioSession
    from botocore import exceptions
    from botocore.parsers import ResponseParserError
except ImportError:
    raise ConfigError(
        "an archive in a bucket needs aiobotocore, which is not installed: install podlife[s3]"
    ) from None

_MAX_RESPONSE_BYTES = 64 << 20
_LISTED = {"Key", "Size", "LastModified"}
_NOT_S3 = "unexpected answer, not S3: check AWS_ENDPOINT_URL"

# Warnings repeat the error of the call with a traceback; debug messages contain temporary credentials.
for _name in ("aiobotocore", "botocore"):
    logging.getLogger(_name).setLevel(logging.ERROR)


class MissingError(ArchiveError):
    """The object does not exist, or the credentials do not allow reading it; S3 may not distinguish the two."""


class S3Client:
    """The caller closes it. `try_seconds` limits one attempt, `seconds` a call with all its retries."""

    def __init__(self, bucket: str, *, try_seconds: float = 15.0, seconds: float = 30.0) -> None:
        self.bucket = bucket
        self._try_seconds = try_seconds
        self._seconds = seconds
        self._opening = asyncio.Lock()
        self._resources = AsyncExitStack()
        self._s3: Any = None

    async def check(self) -> None:
        """Raises ArchiveError without credentials, or with an invalid configuration. Sends nothing to the bucket."""
        await self._call("")

    async def put(self, key: str, data: bytes) -> None:
        response = await self._call("put_object", Key=key, Body=data, ContentType="application/gzip")
        if "ETag" not in response:
            # A web server that accepts everything would not have stored it.
            raise self._error(_NOT_S3)

    async def get(self, key: str, *, most_bytes: int = 0) -> bytes:
        """The object, or its beginning. Raises MissingError."""
        part = {"Range": f"bytes=0-{most_bytes - 1}"} if most_bytes else {}
        response = await self._call("get_object", Key=key, **part)
        body: _Response = response["Body"].raw_stream
        return await body.read()

    async def list_page(self, prefix: str, token: str) -> Object:
        """The response to ListObjectsV2, in which each object has a key, a size and a time."""
        page: Object = await self._call(
            "list_objects_v2", Prefix=prefix, **({"ContinuationToken": token} if token else {})
        )
        # The library parses any other document as an empty list.
        is_list = "IsTruncated" in page and all(each.keys() >= _LISTED for each in page.get("Contents", ()))
        if not is_list:
            raise self._error(_NOT_S3)
        return page

    async def close(self) -> None:
        """The next call opens it again."""
        self._s3 = None
        await self._resources.aclose()

    async def _call(self, operation: str, **parameters: Any) -> Any:
        try:
            async with asyncio.timeout(self._seconds):
                s3 = await self._opened()
                return await getattr(s3, operation)(Bucket=self.bucket, **parameters) if operation else None
        except ArchiveError:
            raise
        except TimeoutError:
            raise self._error(f"it has not answered within {self._seconds:g} s") from None
        except exceptions.ClientError as error:
            raise self._refusal(error) from None
        except Exception as error:  # noqa: BLE001 - credential providers raise arbitrary errors
            raise self._error(self._reason(error)) from None

    async def _opened(self) -> Any:
        async with self._opening:
            if self._s3 is None:
                session = _new_session(self._try_seconds)
                if await session.get_credentials() is None:
                    raise self._error(
                        "no AWS credentials found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or "
                        "assign a role to the service account or the machine"
                    )
                self._s3 = await self._connected(session)
        return self._s3

    async def _connected(self, session: Any) -> Any:
        bundle = session.get_config_variable("ca_bundle")
        try:
            await asyncio.to_thread(ssl.create_default_context, cafile=bundle)
        except OSError as error:
            raise self._error(f"cannot read AWS_CA_BUNDLE {bundle!r}: {error}") from None
        try:
            s3 = await self._resources.enter_async_context(session.create_client("s3"))
            parts = urlsplit(s3.meta.endpoint_url)
            is_valid = parts.port != 0 and not parts.username and not parts.query
        except exceptions.BotoCoreError:
            raise
        except ValueError:
            is_valid = False
        if not is_valid:
            # Not quoted: it may contain a password.
            raise self._error("invalid AWS_ENDPOINT_URL: expected https://HOST:PORT")
        return s3

    def _refusal(self, error: exceptions.ClientError) -> ArchiveError:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        code = " ".join(str(error.response["Error"]["Code"]).split())[:80]
        if error.operation_name not in ("PutObject", "GetObject", "ListObjectsV2"):
            return self._error(f"no credentials: {error.operation_name} answers {status} {code}")
        if code in ("", str(status)):
            # The library reports 500 if the server responded with 200 and a document that is not XML.
            return self._error(f"it answers {status} without an error code of S3: check AWS_ENDPOINT_URL")
        refusal = self._error(f"it answers {status} {code}{_ADVICE.get(status, '')}")
        is_missing = error.operation_name == "GetObject" and status in (403, 404)
        return MissingError(str(refusal)) if is_missing else refusal

    def _reason(self, error: Exception) -> str:
        cause = error.kwargs.get("error") if isinstance(error, exceptions.BotoCoreError) else None
        if isinstance(cause, ArchiveError):
            return str(cause)
        if isinstance(error, exceptions.ReadTimeoutError | exceptions.ConnectTimeoutError):
            return f"it has not answered within {self._try_seconds:g} s"
        if isinstance(error, exceptions.HTTPClientError | exceptions.ConnectionError):
            # Without the path, which differs for each object.
            where = "/".join(error.kwargs.get("endpoint_url", "the endpoint").split("/")[:3])
            return f"it cannot be reached: {_connection_error(cause)}; check {where} (AWS_ENDPOINT_URL)"
        if isinstance(error, ResponseParserError) or type(error) in (ValueError, KeyError):
            return _NOT_S3
        return " ".join(str(error).split()) or type(error).__name__

    def _error(self, why: str) -> ArchiveError:
        return ArchiveError(f"the archive s3://{self.bucket} cannot be used: {why}")


_ADVICE = {
    301: ": it is somewhere else, check AWS_REGION and AWS_ENDPOINT_URL",
    307: ": it is somewhere else, check AWS_REGION and AWS_ENDPOINT_URL",
    403: ": check the credentials, and that they may put, get and list there",
    404: ": check its name, AWS_REGION and AWS_ENDPOINT_URL",
}


def _new_session(try_seconds: float) -> Any:
    session = AioSession()
    # botocore does not read AWS_REGION; other AWS tools do.
    region = os.environ.get("AWS_REGION") or session.get_config_variable("region") or "us-east-1"
    session.set_config_variable("region", region)
    config = AioConfig(
        connect_timeout=try_seconds,
        read_timeout=try_seconds,
        max_pool_connections=16,
        retries={"mode": "standard", "total_max_attempts": 3},
        http_session_cls=_HttpSession,
        # In a thread: it reads megabytes of JSON.
        warm_up_loader_caches=True,
        # The signature covers the entry, so the server need not support AWS's newer checksums.
        s3={"payload_signing_enabled": True},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    # As the default, so that it applies to credential requests, too.
    session.set_default_client_config(config)
    return session


class _HttpSession(AIOHTTPSession):  # type: ignore[misc]  # it has no types
    """aiobotocore's session follows redirects and reads responses of any size. A test fails if this is not used."""

    async def _get_session(self, proxy_url: str | None) -> _BoundedSession:
        return _BoundedSession(await super()._get_session(proxy_url))


class _BoundedSession:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def request(self, method: str, **options: Any) -> _Response:
        body = bytearray()
        async with self._session.request(method, **options, allow_redirects=False) as response:
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > _MAX_RESPONSE_BYTES:
                    raise ArchiveError("its answer is larger than any entry")
            return _Response(str(response.url), response.status, response.raw_headers, bytes(body))


@dataclass(frozen=True, slots=True)
class _Response:
    """The part of a response that aiobotocore uses. The body is complete, so that a broken connection fails the
    request, which is retried."""

    url: str
    status: int
    raw_headers: tuple[tuple[bytes, bytes], ...]
    body: bytes

    async def read(self) -> bytes:
        return self.body

    def close(self) -> None:
        """Called by the library when it drops a stream."""


def _connection_error(cause: object) -> str:
    # The library's message mentions ssl:default even without TLS.
    if isinstance(getattr(cause, "os_error", cause), ConnectionRefusedError):
        return "connection refused"
    return " ".join(str(cause).split()) or type(cause).__name__
