"""Stands in for etcd under envtest: reports its health and stores nothing.

A program of its own that starts in a few milliseconds, since tests of every package wait for it: it needs no
site-packages and no other module of podlife.
"""

from __future__ import annotations

import re
import socket
import sys

_HELP = """\
etcd of `podlife envtest`: reports its health and stores nothing. All flags of etcd are accepted.

      --listen-client-urls string   URL to listen on (default http://127.0.0.1:2379)"""
_FLAG = "--listen-client-urls"
_STALL_SECONDS = 5.0
_HEAD_BYTES = 8192


def main(arguments: list[str]) -> None:
    if not {"-h", "--help"}.isdisjoint(arguments):
        print(_HELP)  # noqa: T201 - a program of its own
        return
    words = [word for each in arguments for word in each.split("=", 1)]
    url = words[words.index(_FLAG) + 1] if _FLAG in words[:-1] else "http://127.0.0.1:2379"
    match = re.match(r"http://(?:\[([0-9a-f:.]+)\]|([^\[\]:/,]+)):(\d{1,5})", url)
    if match is None:
        sys.exit(f"etcd: invalid {_FLAG} {url!r}: expected http://ADDRESS:PORT")
    host = match[1] or match[2]
    try:
        family = socket.AF_INET6 if match[1] else socket.AF_INET
        listener = socket.create_server((host, int(match[3])), family=family)
    except (OSError, OverflowError) as error:
        sys.exit(f"etcd: cannot listen on {url}: {error}")
    while True:
        client, _ = listener.accept()
        with client:
            _serve(client)


def _serve(client: socket.socket) -> None:
    client.settimeout(_STALL_SECONDS)
    try:
        path = client.recv(_HEAD_BYTES).split(b" ", 2)[1:2]
        known = path in ([b"/health"], [b"/livez"], [b"/readyz"])
        status, body = ("200 OK", '{"health":"true","reason":""}') if known else ("404 Not Found", "")
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        client.sendall(f"{head}Connection: close\r\n\r\n{body}".encode())
    except OSError:
        # A client that left or stalled.
        return


if __name__ == "__main__":
    main(sys.argv[1:])
