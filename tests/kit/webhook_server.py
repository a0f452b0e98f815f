"""A webhook: an HTTPS server in a thread of the test, whose answers the test chooses by path.

An answer is a function of the review's request; it returns the `response` of a review (its UID is added), or a `Raw`
for everything that a webhook should not answer.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.kit.real_pki import Pki

Json = dict[str, Any]


@dataclass(frozen=True)
class Raw:
    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


Answer = Callable[[Json], Json | Raw]


def allow(_: Json) -> Json:
    return {"allowed": True}


def deny(message: str = "no", **status: Any) -> Answer:
    return lambda _: {"allowed": False, "status": {"message": message, **status}}


def patch(*operations: Json) -> Answer:
    return lambda _: patched(*operations)


def patched(*operations: Json) -> Json:
    encoded = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


class WebhookServer:
    """`answers` are by path; `reviews` are what was received, in order. `released` ends the answers of `hang`, and
    `connections` are those that are open."""

    def __init__(self, port: int, ca_bundle: bytes) -> None:
        self.port = port
        self.ca_bundle = base64.b64encode(ca_bundle).decode()
        self.answers: dict[str, Answer] = {}
        self.reviews: list[tuple[str, Json]] = []
        self.released = threading.Event()
        self.connections: set[object] = set()

    def asked(self, path: str) -> list[Json]:
        """The requests that a path was asked about."""
        return [review["request"] for at, review in self.reviews if at == path]

    def hang(self, _: Json) -> Json:
        self.released.wait(60)
        return {"allowed": True}

    def at(self, path: str, answer: Answer = allow) -> Json:
        """The client configuration of a webhook that answers so."""
        self.answers[path] = answer
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.ca_bundle}

    def answer(self, path: str, body: bytes) -> Raw:
        review = json.loads(body)
        self.reviews.append((path, review))
        given = self.answers[path](review["request"])
        if isinstance(given, Raw):
            return given
        response = {"uid": review["request"]["uid"], **given}
        whole = {"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response}
        return Raw(json.dumps(whole).encode())


def webhook(name: str, client_config: Json, **others: Any) -> Json:
    """A webhook for config maps that are written or deleted, unless `others` say something else."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
    return {
        "name": f"{name}.example.com",
        "clientConfig": client_config,
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **others,
    }


@contextmanager
def webhook_server(
    folder: Path, *names: str, certificate: tuple[Path, Path] | None = None
) -> Iterator[WebhookServer]:
    """Serve until the block is left, with a certificate for loopback and these names, or with the one given."""
    pki = Pki(folder / "webhook-pki")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*(certificate or pki.issue_server(*names)))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            served.connections.add(self)

        def finish(self) -> None:
            served.connections.discard(self)
            super().finish()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            raw = served.answer(self.path.partition("?")[0], body)
            self.send_response(raw.status)
            for name, value in {**raw.headers, "Content-Length": str(len(raw.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw.body)

        def log_message(self, *args: Any) -> None:
            """Nothing is printed."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that hangs up, or distrusts the certificate, is what many tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    served = WebhookServer(server.server_address[1], pki.ca_file.read_bytes())
    thread = threading.Thread(target=server.serve_forever, name="webhook server", daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.released.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
