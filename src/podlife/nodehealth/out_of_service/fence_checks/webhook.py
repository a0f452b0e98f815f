"""Fence check by webhook: a POST that is answered with {"dead": true} or anything else.

Redirects are not followed and responses are bounded: only the configured endpoint can confirm.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from podlife.api.codec import decode_object, encode
from podlife.nodehealth.out_of_service.fence_checks.check import FenceAnswer, FenceResult, FenceSubject, shown

_MOST_ANSWER = 64 * 1024


class WebhookCheck:
    """Trusts the CAs of the machine (SSL_CERT_FILE)."""

    kind = "webhook"

    def __init__(self, url: str, *, seconds: float) -> None:
        self._url = url
        self._seconds = seconds
        # The rest of the URL may be a secret.
        self.name = f"{self.kind} {urlsplit(url).hostname}"

    async def ask(self, subject: FenceSubject) -> FenceAnswer:
        import aiohttp

        try:
            status, body = await self._post(subject)
        except TimeoutError:
            return self._answer(FenceResult.TIMEOUT, f"no answer within {self._seconds:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return self._answer(FenceResult.FAILED, f"no answer: {shown(_reason(error))}")
        if not 200 <= status < 300:
            return self._answer(FenceResult.FAILED, f"it answered with {status}")
        if len(body) > _MOST_ANSWER:
            return self._answer(FenceResult.FAILED, f"its answer is longer than {_MOST_ANSWER} bytes")
        try:
            dead = decode_object(body).get("dead")
        except ValueError:
            return self._answer(FenceResult.FAILED, "its response is not a JSON object")
        if dead is True:
            return self._answer(FenceResult.DEAD)
        if dead is False:
            return self._answer(FenceResult.NOT_DEAD, "it reports that the machine is not dead")
        return self._answer(FenceResult.FAILED, 'its answer has no "dead" that is true or false')

    async def _post(self, subject: FenceSubject) -> tuple[int, bytes]:
        import aiohttp

        node = {
            "name": subject.name,
            "uid": subject.uid,
            "providerID": subject.provider_id,
            "internalIPs": subject.internal_ips,
        }
        question = {"node": node, "notReadySeconds": round(subject.not_ready_seconds)}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        async with (
            aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=self._seconds),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            ) as session,
            session.post(self._url, data=encode(question), headers=headers, allow_redirects=False) as answer,
        ):
            body = b""
            while len(body) <= _MOST_ANSWER and (piece := await answer.content.read(_MOST_ANSWER)):
                body += piece
            return answer.status, body

    def _answer(self, result: FenceResult, text: str = "") -> FenceAnswer:
        return FenceAnswer(self.name, result, text)


def _reason(error: Exception) -> str:
    """Not the library's own text, which may contain the whole URL."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
