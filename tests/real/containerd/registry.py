"""A registry of images on loopback, with one image in it: what a daemon asks of one when it pulls."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .image import Image


@contextmanager
def registry(image: Image) -> Iterator[str]:
    """`127.0.0.1:port`, where `image:1` is; `denied:1` is for nobody, and everything else is unknown."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def log_message(self, *_: object) -> None:
            """Whoever looks for a failure finds it in the daemon's log."""

        def _answer(self, *, with_body: bool) -> None:
            status, media_type, digest, body = _find(image, self.path)
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            if digest:
                self.send_header("Docker-Content-Digest", digest)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


def _find(image: Image, path: str) -> tuple[int, str, str, bytes]:
    if path.startswith("/v2/denied/"):
        return 403, "application/json", "", b'{"errors":[{"code":"DENIED","message":"not for you"}]}'
    if path in ("/v2/image/manifests/1", f"/v2/image/manifests/{image.manifest}"):
        body = image.blobs[image.manifest]
        return 200, "application/vnd.oci.image.manifest.v1+json", image.manifest, body
    digest = path.removeprefix("/v2/image/blobs/")
    if digest in image.blobs:
        return 200, "application/octet-stream", digest, image.blobs[digest]
    return 404, "application/json", "", b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}'
