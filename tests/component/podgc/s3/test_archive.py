"""The archive in a bucket, against a server that checks every signature, and does what networks and servers do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from podlife.clock import Clock, ManualClock, SystemClock
from podlife.podgc.archive import ArchiveError, DamagedError, s3_client
from podlife.podgc.archive.reader import ArchivedEntry, DamagedEntry, find
from podlife.podgc.archive.s3 import S3Archive, S3Reader
from podlife.podgc.archive.s3_client import S3Client
from tests.component.podgc.s3.conftest import use
from tests.component.podgc.s3_server import BUCKET, REGION, S3Server, failure
from tests.unit.podgc.archive.entries import UID, make_entry


def failing(status: int, code: str, **headers: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def fail(request: web.Request) -> web.Response:
        return failure(status, code, **headers)

    return fail


def uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


async def test_what_is_put_comes_back_signed_both_ways(
    server: S3Server, archive: S3Archive, shelf: S3Reader
) -> None:
    for number in range(8):
        await archive.put(make_entry(f"web-{number}", uid=uid(number), log_bytes=200_000))
    await archive.put(make_entry("web-0", uid=uid(0), log_bytes=100))
    assert server.refused == []
    assert f"a b/ü/default/web-3_{uid(3)}.jsonl.gz" in server.objects
    # More than a page of the list has.
    found = [each async for each in shelf.items()]
    assert [each.header.name for each in found if isinstance(each, ArchivedEntry)] == [
        f"web-{n}" for n in range(8)
    ]
    assert [each async for each in shelf.items("other")] == []
    assert [each async for each in shelf.items(since=SystemClock().now() + timedelta(hours=1))] == []
    [item] = await find(shelf, "web-0")
    assert await shelf.read(item.place) == make_entry("web-0", uid=uid(0), log_bytes=100)
    before = len(server.requests)
    [item] = await find(shelf, uid(5))
    assert item.place.name == "web-5"
    # All pages once for the name and once for the UID; and of all the headers this one.
    assert len(server.requests) - before == 3 + 3 + 1


async def test_an_object_that_is_damaged_is_told_beside_the_others(
    server: S3Server, archive: S3Archive, shelf: S3Reader
) -> None:
    await archive.put(make_entry())
    place = f"a b/ü/default/bad_{UID}.jsonl.gz"
    server.objects[place] = b"noise"
    server.objects["a b/ü/default/notes.txt"] = b""
    server.objects["a b/ü/deep/er/still.jsonl.gz"] = b""
    found = [each async for each in shelf.items()]
    assert [type(each) for each in found] == [DamagedEntry, ArchivedEntry]
    with pytest.raises(DamagedError):
        await shelf.read(found[0].place)


@pytest.mark.parametrize("status", [500, 502, 503, 429])
async def test_trouble_that_passes_is_got_over(server: S3Server, archive: S3Archive, status: int) -> None:
    server.faults = [failing(status, "SlowDown")] * 2
    await archive.put(make_entry())
    assert len(server.requests) == 3
    assert len(server.objects) == 1


async def test_trouble_that_stays_is_told_with_its_code(server: S3Server, archive: S3Archive) -> None:
    server.faults = [failing(500, "InternalError")] * 3
    with pytest.raises(ArchiveError, match=f"s3://{BUCKET} cannot be used: it answers 500 InternalError"):
        await archive.put(make_entry())
    assert server.objects == {}


async def test_a_connection_that_is_cut_is_made_again(server: S3Server, archive: S3Archive) -> None:
    async def cut(request: web.Request) -> None:
        assert request.transport is not None
        request.transport.abort()

    server.faults = [cut]
    await archive.put(make_entry(log_bytes=300_000))
    assert len(server.objects) == 1


async def test_an_answer_that_is_cut_is_no_answer(server: S3Server, archive: S3Archive) -> None:
    async def half(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": "100"})
        await answer.prepare(request)
        await answer.write(b"half")
        assert request.transport is not None
        request.transport.abort()
        return answer

    server.faults = [half] * 3
    with pytest.raises(ArchiveError, match="cannot be reached"):
        await archive.put(make_entry())


# When both bounds are over, the one of all tries is told: however long this process is kept waiting, the other must not
# be come to.
@pytest.mark.parametrize(
    "bounds", [{"try_seconds": 0.2, "seconds": 3600.0}, {"try_seconds": 3600.0, "seconds": 0.2}]
)
async def test_a_server_that_does_not_answer_is_not_waited_for(
    server: S3Server, bounds: dict[str, float]
) -> None:
    over = asyncio.Event()

    async def hang(request: web.Request) -> None:
        await over.wait()

    server.faults = [hang] * 3
    archive = S3Archive(S3Client(BUCKET, **bounds), "")
    try:
        with pytest.raises(ArchiveError, match=r"it has not answered within 0\.2 s"):
            await archive.put(make_entry())
    finally:
        over.set()
        await archive.close()


LONG_AGO = ManualClock(datetime(2013, 5, 24, tzinfo=UTC))
NOWHERE = "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("environment", "bucket", "clock", "requests", "told"),
    [
        pytest.param(
            {"AWS_SECRET_ACCESS_KEY": "another"},
            BUCKET,
            SystemClock(),
            1,
            "it answers 403 SignatureDoesNotMatch: check the credentials",
            id="a wrong key",
        ),
        pytest.param({}, BUCKET, LONG_AGO, 1, "403 RequestTimeTooSkewed", id="a clock that is off"),
        pytest.param(
            {}, "another", SystemClock(), 1, "404 NoSuchBucket: check its name", id="no such bucket"
        ),
        pytest.param(
            {"AWS_ENDPOINT_URL": NOWHERE},
            BUCKET,
            SystemClock(),
            0,
            rf"it cannot be reached: connection refused; check {NOWHERE} \(AWS_ENDPOINT_URL\)",
            id="nobody there",
        ),
    ],
)
async def test_what_is_wrong_for_good_is_tried_once_and_told_with_what_to_check(
    server: S3Server,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    bucket: str,
    clock: Clock,
    requests: int,
    told: str,
) -> None:
    use(monkeypatch, environment)
    server.clock = clock
    archive = S3Archive(S3Client(bucket), "")
    with pytest.raises(ArchiveError, match=told):
        await archive.put(make_entry())
    await archive.close()
    assert (len(server.requests), server.objects) == (requests, {})


async def test_an_answer_that_points_elsewhere_is_not_followed(server: S3Server, archive: S3Archive) -> None:
    server.faults = [failing(307, "TemporaryRedirect", Location=f"{server.url}/stolen")] * 9
    with pytest.raises(
        ArchiveError, match="it answers 307 TemporaryRedirect: it is somewhere else, check AWS_R"
    ):
        await archive.put(make_entry())
    assert server.requests
    assert all(path.startswith(f"/{BUCKET}") for _, path in server.requests)
    assert server.objects == {}


async def test_a_bucket_of_another_region_is_found(
    server: S3Server, archive: S3Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "ap-south-1")
    server.faults = [failing(301, "PermanentRedirect", **{"x-amz-bucket-region": REGION})]
    await archive.put(make_entry())
    assert (len(server.requests), len(server.objects)) == (2, 1)


async def test_an_answer_without_end_is_not_read_to_it(
    server: S3Server, archive: S3Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_client, "_MAX_RESPONSE_BYTES", 1 << 20)

    async def endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while request.transport is not None and not request.transport.is_closing():
            await answer.write(bytes(1 << 16))
        return answer

    server.faults = [endless] * 3
    with pytest.raises(ArchiveError, match="its answer is larger than any entry"):
        await archive.get("default", "web", UID)


def listed(entry: str) -> str:
    return (
        f"<ListBucketResult><IsTruncated>false</IsTruncated><Contents>{entry}</Contents></ListBucketResult>"
    )


@pytest.mark.parametrize(
    "text",
    [
        *("", "<a>", "<!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>", listed("<Key>a</Key>")),
        listed("<Key>a</Key><Size>1</Size><LastModified>lately</LastModified>"),
        listed("<Key>a</Key><Size>large</Size><LastModified>2030-01-01T00:00:00Z</LastModified>"),
    ],
)
async def test_a_list_that_is_none_is_told(server: S3Server, shelf: S3Reader, text: str) -> None:
    async def nonsense(request: web.Request) -> web.Response:
        return web.Response(text=text)

    server.faults = [nonsense] * 3
    told = "unexpected answer, not S3: check AWS_E|without an error code of S3: check AWS_E"
    with pytest.raises(ArchiveError, match=told):
        [each async for each in shelf.items()]


async def test_what_is_kept_already_is_read_before_it_is_replaced(
    server: S3Server, archive: S3Archive
) -> None:
    assert await archive.get("default", "web", UID) is None
    entry = make_entry(log_bytes=1000)
    await archive.put(entry)
    assert await archive.get("default", "web", UID) == entry
    server.objects = {key: value[:50] for key, value in server.objects.items()}
    assert await archive.get("default", "web", UID) is None
    # With keys that may only put it is as if nothing were there.
    server.faults = [failing(403, "AccessDenied")]
    assert await archive.get("default", "web", UID) is None
    # Whether there is something is not known then, and it must not be lost.
    server.faults = [failing(500, "InternalError")] * 3
    with pytest.raises(ArchiveError, match="500"):
        await archive.get("default", "web", UID)


async def test_a_server_that_says_yes_to_everything_has_kept_nothing(
    server: S3Server, archive: S3Archive
) -> None:
    """As a console or a proxy does that AWS_ENDPOINT_URL names by mistake."""

    async def agree(request: web.Request) -> web.StreamResponse:
        return web.Response(text="<html>Welcome</html>", content_type="text/html")

    server.faults = [agree]
    with pytest.raises(ArchiveError, match="unexpected answer, not S3: check AWS_ENDPOINT_URL"):
        await archive.put(make_entry())
