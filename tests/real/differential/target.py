"""Sends a step to one server, and brings back the answer as it came."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from tests.kit.real_parts import Server
from tests.real.differential.steps import JSON, Step, fill

# What a client acts on. The others (dates, audit ids, flow control) differ by nature.
COMPARED_HEADERS = ("Content-Type", "Warning", "Retry-After", "Allow")
ANSWER_SECONDS = 120.0


@dataclass(frozen=True)
class Answer:
    code: int
    headers: Mapping[str, list[str]]
    body: Any


class Target:
    """One server. Requests share a connection, as clients do."""

    def __init__(self, server: Server) -> None:
        context = ssl.create_default_context(cafile=str(server.ca_file))
        self._server = server
        self._connection = http.client.HTTPSConnection(
            server.host, server.port, context=context, timeout=ANSWER_SECONDS
        )

    def close(self) -> None:
        self._connection.close()

    def send(self, step: Step, variables: Mapping[str, str]) -> Answer:
        payload = step.payload(variables)
        headers = {"Accept": JSON}
        if payload is not None:
            headers["Content-Type"] = JSON
        if token := self._server.tokens.get(step.who):
            headers["Authorization"] = f"Bearer {token}"
        headers.update({name: fill(value, variables) for name, value in step.headers.items()})
        # A header that a step leaves empty is not sent at all.
        headers = {name: value for name, value in headers.items() if value}
        try:
            return self._exchange(step, fill(step.path, variables), payload, headers)
        except (OSError, http.client.HTTPException) as error:
            # The next step starts on a connection of its own.
            self._connection.close()
            return Answer(0, {}, f"no answer: {type(error).__name__}")

    def _exchange(self, step: Step, path: str, payload: bytes | None, headers: dict[str, str]) -> Answer:
        self._connection.request(step.method, path, payload, headers)
        response = self._connection.getresponse()
        raw = response.read()
        compared = {
            name: values for name in COMPARED_HEADERS if (values := response.headers.get_all(name) or [])
        }
        return Answer(response.status, compared, _decode(raw, response.headers.get_content_type(), step))


def _decode(raw: bytes, content_type: str, step: Step) -> Any:
    text = raw.decode("utf-8", "replace")
    if content_type == "application/yaml":
        # Scalars stay text, whichever way a server quotes them.
        return yaml.load(text, Loader=yaml.BaseLoader)
    try:
        if step.is_watch:
            return [json.loads(line) for line in text.splitlines() if line]
        return json.loads(text) if text else None
    except ValueError:
        return text
