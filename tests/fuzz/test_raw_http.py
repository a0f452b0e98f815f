"""What is hardly HTTP: half requests, pipelines, bad framing, old versions, headers and bodies without end.

After each of them the connection is closed or goes on in order, and the next client is served as always.
"""

from __future__ import annotations

import socket
from http.client import HTTPException, HTTPResponse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.conftest import share
from tests.fuzz.wire import Answer, Wire, judge
from tests.kit.server_process import ServerProcess

MIB = 1 << 20
PODS = b"/api/v1/namespaces/default/pods"
POD = b'{"metadata":{"name":"raw"},"spec":{"containers":[{"name":"main","image":"i"}]}}'


@pytest.fixture
def token(fuzzed: ServerProcess) -> bytes:
    return b"Authorization: Bearer " + fuzzed.token.encode() + b"\r\n"


def answers(wire: Wire, data: bytes, *, most: int = 1, method: str = "GET") -> list[Answer]:
    """What comes back for these bytes on a connection of its own, until it is closed or enough has come."""
    wire.sent += most
    found: list[Answer] = []
    with wire.connect() as connection:
        try:
            connection.sendall(data)
            while len(found) < most:
                response = HTTPResponse(connection, method=method)
                response.begin()
                body = b"" if response.chunked else response.read()
                content_type = response.headers.get("Content-Type", "")
                found.append(
                    judge(Answer(response.status, content_type, body, bool(response.chunked)), method)
                )
                if response.will_close:
                    break
        except TimeoutError:
            pytest.fail("no answer, and the connection stands")
        except (OSError, EOFError):
            pass  # cut off: that is an answer too
    return found


def is_served(wire: Wire) -> bool:
    return wire.request("GET", "/version").status == 200


@share(0.03)
@given(at=st.integers(0, 400))
def test_a_request_that_ends_anywhere_disturbs_nobody(wire: Wire, token: bytes, at: int) -> None:
    whole = b"POST %b HTTP/1.1\r\nHost: x\r\n%bContent-Length: %d\r\n\r\n%b" % (PODS, token, len(POD), POD)
    wire.sent += 1
    with wire.connect() as connection:
        connection.sendall(whole[: min(at, len(whole) - 1)])
    assert is_served(wire)


@share(0.01)
@given(codes=st.lists(st.sampled_from([200, 404, 405, 422]), min_size=2, max_size=20))
def test_pipelined_requests_are_answered_in_order(wire: Wire, token: bytes, codes: list[int]) -> None:
    lines = {
        200: b"GET /version HTTP/1.1\r\nHost: x\r\n" + token + b"\r\n",
        404: b"GET /api/v1/nothing HTTP/1.1\r\nHost: x\r\n" + token + b"\r\n",
        405: b"PUT /version HTTP/1.1\r\nHost: x\r\n" + token + b"Content-Length: 2\r\n\r\n{}",
        422: b"POST " + PODS + b" HTTP/1.1\r\nHost: x\r\n" + token + b"Content-Length: 2\r\n\r\n{}",
    }
    found = answers(wire, b"".join(lines[code] for code in codes), most=len(codes))
    assert [answer.status for answer in found] == codes


FRAMES = (
    b"0\r\n\r\n", b"5\r\nabc\r\n0\r\n\r\n", b"zz\r\nabc\r\n0\r\n\r\n", b"-1\r\n\r\n", b"ffffffffffffffffff\r\n",
    b"\r\n",
    b"3;x=y\r\nabc\r\n0\r\n\r\n", b"3\r\nabc0\r\n\r\n", b"3\r\nabc\r\n0\r\nTrailer: x\r\n\r\n",
    b"0x3\r\nabc\r\n0\r\n\r\n",
    b" 3\r\nabc\r\n0\r\n\r\n", b"3\nabc\n0\n\n", b"1" * 5000,
)  # fmt: skip
ODD = (
    b"GET /version HTTP/1.0\r\n\r\n", b"GET /version HTTP/0.9\r\n\r\n", b"GET /version\r\n\r\n", b"GET\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET /version HTTP/1.1\r\n\r\n", b"GET /version HTTP/9.9\r\nHost: x\r\n\r\n",
    b"get /version HTTP/1.1\r\nHost: x\r\n\r\n", b"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", b"GET https://x/version HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET //version HTTP/1.1\r\nHost: x\r\n\r\n", b"GET http://[::1 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://a:b:c/ HTTP/1.1\r\nHost: x\r\n\r\n", b"GET ? HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET # HTTP/1.1\r\nHost: x\r\n\r\n", b"GET x HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /a#b?c HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x00\x00",
    b"GET / HTTP/1.1\nHost: x\n\n", b"GET / HTTP/1.1\r\nHost: x\r\nX : y\r\n\r\n", b"GET / HTTP/1.1\r\n X: y\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(500)) + b"\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nExpect: x\r\n\r\n", b"\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x00" * 100,
)  # fmt: skip


@pytest.mark.parametrize("frame", FRAMES)
def test_a_chunked_body_with_bad_framing_is_refused_or_cut_off(
    wire: Wire, token: bytes, frame: bytes
) -> None:
    head = b"POST %b HTTP/1.1\r\nHost: x\r\n%bTransfer-Encoding: chunked\r\n\r\n" % (PODS, token)
    for answer in answers_of_ended(wire, head + frame):
        assert answer.status >= 400
    assert is_served(wire)


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd[:40]))
def test_what_is_hardly_http_is_refused_or_cut_off(wire: Wire, odd: bytes) -> None:
    answers_of_ended(wire, odd)
    assert is_served(wire)


def answers_of_ended(wire: Wire, data: bytes) -> list[Answer]:
    """As `answers`, but the client says that nothing more will come."""
    wire.sent += 1
    with wire.connect() as connection:
        try:
            # Who has heard enough hangs up before it has heard everything.
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            response = HTTPResponse(connection)
            response.begin()
            body = response.read()
        except TimeoutError:
            pytest.fail("no answer, and the connection stands")
        except (OSError, EOFError, HTTPException):
            return []  # cut off: that is an answer too
        return [judge(Answer(response.status, response.headers.get("Content-Type", ""), body))]


@share(0.03)
@given(data=st.binary(max_size=300), is_after=st.booleans())
def test_bytes_without_any_sense_disturb_nobody(
    wire: Wire, token: bytes, data: bytes, is_after: bool
) -> None:
    head = b"GET /version HTTP/1.1\r\nHost: x\r\n%b\r\n" % token
    answers_of_ended(wire, head + data if is_after else data + head)
    assert is_served(wire)


@pytest.mark.parametrize("size", [3 * MIB, 3 * MIB + 1, 8 * MIB])
def test_a_large_body_is_read_whole_or_refused_as_too_large(wire: Wire, size: int) -> None:
    body = POD[:-1] + b',"x":"' + b"x" * (size - len(POD) - 7) + b'"}'
    answer = judge(wire.request("POST", (PODS + b"?dryRun=All").decode(), body[:size].ljust(size)))
    assert answer.status == (201 if size <= 3 * MIB else 413), answer.body


@pytest.mark.parametrize("unit", [b"[", b'{"a":', b'[{"a":'], ids=["lists", "objects", "both"])
@pytest.mark.parametrize("depth", [100, 1_000, 100_000])
def test_nesting_of_any_depth_is_answered(wire: Wire, unit: bytes, depth: int) -> None:
    whole = unit * depth + b"1" + (b"]}" if unit == b'[{"a":' else b"]" if unit == b"[" else b"}") * depth
    body = b'{"metadata":{"name":"deep"},"data":%b}' % whole
    for target in (
        "/api/v1/namespaces/default/configmaps",
        "/apis/apps/v1/namespaces/default/controllerrevisions",
    ):
        answer = judge(wire.request("POST", f"{target}?dryRun=All", body))
        assert answer.status in (201, 400, 422)
        for content_type in ("application/yaml", "application/merge-patch+json"):
            method = "POST" if content_type.endswith("yaml") else "PATCH"
            judge(wire.request(method, f"{target}?dryRun=All", body, Content_Type=content_type))
