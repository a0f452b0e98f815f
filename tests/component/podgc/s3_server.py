"""A small S3: one bucket in memory, and no request without a right signature.

The signature is computed here from the bytes that came, by the published algorithm and none of our own code. What a
test puts into `faults` is done to the requests in their order, before anything else.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

from aiohttp import web

from podlife.clock import Clock, SystemClock

ACCESS, SECRET, REGION, BUCKET = "AKIDEXAMPLE", "secret/of+the=test", "eu-test-1", "kept"
_PAGE = 3
_PROOF = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?Signature=(\w{64})"
)

Fault = Callable[[web.Request], Awaitable[web.StreamResponse | None]]


class S3Server:
    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str]] = []
        self.refused: list[str] = []
        self.clock: Clock = SystemClock()
        # By access key: the secret, and the token that a lent key comes with.
        self.keys = {ACCESS: (SECRET, "")}
        self.url = ""

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": ACCESS,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.raw_path))
        if self.faults and (answer := await self.faults.pop(0)(request)) is not None:
            return answer
        body = await request.read()
        if why := self._why_refused(request, body):
            self.refused.append(why)
            return failure(403, why)
        path, _, query = request.raw_path.partition("?")
        bucket, _, key = unquote(path).removeprefix("/").partition("/")
        if bucket != BUCKET:
            return failure(404, "NoSuchBucket")
        if request.method == "PUT":
            self.objects[key] = body
            return web.Response(headers={"ETag": f'"{hashlib.md5(body).hexdigest()}"'})
        return self._listed(dict(parse_qsl(query))) if not key else self._got(key, request)

    def _got(self, key: str, request: web.Request) -> web.Response:
        if key not in self.objects:
            return failure(404, "NoSuchKey")
        part = re.fullmatch(r"bytes=0-(\d+)", request.headers.get("Range", ""))
        data = self.objects[key]
        return web.Response(status=206, body=data[: int(part[1]) + 1]) if part else web.Response(body=data)

    def _listed(self, query: dict[str, str]) -> web.Response:
        keys = sorted(key for key in self.objects if key.startswith(query.get("prefix", "")))
        begin = int(query.get("continuation-token", "0"))
        page, is_cut = keys[begin : begin + _PAGE], len(keys) > begin + _PAGE
        now = SystemClock().now().strftime("%Y-%m-%dT%H:%M:%S.000Z")
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{now}</LastModified>"
            f"<Size>{len(self.objects[key])}</Size></Contents>"
            for key in page
        )
        token = f"<NextContinuationToken>{begin + _PAGE}</NextContinuationToken>" if is_cut else ""
        text = (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<IsTruncated>{str(is_cut).lower()}</IsTruncated>{token}{contents}</ListBucketResult>"
        )
        return web.Response(text=text, content_type="application/xml")

    def _why_refused(self, request: web.Request, body: bytes) -> str:
        proof = _PROOF.fullmatch(request.headers.get("Authorization", ""))
        if proof is None:
            return "AccessDenied"
        access, day, region, names, signature = proof.groups()
        if access not in self.keys:
            return "InvalidAccessKeyId"
        secret, token = self.keys[access]
        if request.headers.get("x-amz-security-token", "") != token:
            return "InvalidToken"
        if request.headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
            return "XAmzContentSHA256Mismatch"
        moment = request.headers["x-amz-date"]
        age = self.clock.now() - datetime.strptime(moment, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if abs(age.total_seconds()) > 900 or not moment.startswith(day):
            return "RequestTimeTooSkewed"
        if region != REGION:
            return "AuthorizationHeaderMalformed"
        required = {"host", *(name.lower() for name in request.headers if name.lower().startswith("x-amz-"))}
        if not required <= set(names.split(";")):
            return "AccessDenied"
        path, _, query = request.raw_path.partition("?")
        canonical = [request.method, path, "&".join(sorted(query.split("&"))) if query else ""]
        canonical += [f"{name}:{request.headers[name].strip()}" for name in names.split(";")]
        canonical += ["", names, hashlib.sha256(body).hexdigest()]
        hashed = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
        key = f"AWS4{secret}".encode()
        for part in (day, region, "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), "sha256").digest()
        text = f"AWS4-HMAC-SHA256\n{moment}\n{day}/{region}/s3/aws4_request\n{hashed}"
        expected = hmac.new(key, text.encode(), "sha256").hexdigest()
        return "" if hmac.compare_digest(signature, expected) else "SignatureDoesNotMatch"


def failure(status: int, code: str, **headers: str) -> web.Response:
    text = f"<Error><Code>{code}</Code><Message>no</Message></Error>"
    return web.Response(status=status, text=text, content_type="application/xml", headers=headers)


@asynccontextmanager
async def serving_s3() -> AsyncIterator[S3Server]:
    server = S3Server()
    async with served(server.handle) as server.url:
        yield server


@asynccontextmanager
async def served(
    handle: Callable[[web.Request], Awaitable[web.StreamResponse]], tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """Its address on loopback, for as long as the block lasts."""
    app = web.Application(client_max_size=64 << 20)
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    [address] = runner.addresses
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{address[1]}"
    finally:
        async with asyncio.timeout(60):
            await runner.cleanup()
