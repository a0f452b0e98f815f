"""How a bucket is found, and with whose credentials: the environment, profiles, roles of service accounts."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web

from podlife.clock import SystemClock
from podlife.podgc.archive import ArchiveError, s3_client
from podlife.podgc.archive.s3 import S3Archive
from podlife.podgc.archive.s3_client import S3Client
from tests.component.client.authority import Authority
from tests.component.podgc.s3.conftest import use
from tests.component.podgc.s3_server import S3Server, served
from tests.unit.podgc.archive.entries import UID, make_entry


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"AWS_ACCESS_KEY_ID": ""},
            "no AWS credentials found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        ),
        ({"AWS_SECRET_ACCESS_KEY": ""}, "AWS_SECRET_ACCESS_KEY"),
        ({"AWS_PROFILE": "nobody"}, r"profile \(nobody\) could not be found"),
        ({"AWS_ENDPOINT_URL": "minio:9000"}, "invalid AWS_ENDPOINT_URL"),
        ({"AWS_ENDPOINT_URL": "https://host:port"}, "invalid AWS_ENDPOINT_URL"),
        ({"AWS_ENDPOINT_URL": "https://user:pw@host"}, "invalid AWS_ENDPOINT_URL"),
        ({"AWS_ENDPOINT_URL": "https://host?query"}, "invalid AWS_ENDPOINT_URL"),
        ({"AWS_REGION": "eu central"}, "'eu central'"),
        ({"AWS_CA_BUNDLE": "/nowhere.pem"}, r"cannot read AWS_CA_BUNDLE '/nowhere\.pem'"),
    ],
)
async def test_an_environment_that_cannot_be_is_refused_before_a_request(
    server: S3Server, archive: S3Archive, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], why: str
) -> None:
    use(monkeypatch, changes)
    with pytest.raises(ArchiveError, match=why) as refused:
        await archive.check()
    assert "\n" not in str(refused.value)
    assert "pw" not in str(refused.value)
    assert server.requests == []


@pytest.mark.parametrize(
    ("bucket", "endpoint", "address"),
    [
        ("kept", "", "https://kept.s3.eu-west-1.amazonaws.com/key"),
        # A certificate knows one word before the region.
        ("kept.pods", "", "https://s3.eu-west-1.amazonaws.com/kept.pods/key"),
        ("kept", "http://minio:9000/", "http://minio:9000/kept/key"),
    ],
)
async def test_a_bucket_stands_in_the_host_on_aws_and_in_the_path_elsewhere(
    bucket: str, endpoint: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "eu-west-1"}
    use(monkeypatch, given | ({"AWS_ENDPOINT_URL": endpoint} if endpoint else {}))
    sent: list[str] = []

    async def note(session: object, method: str, **options: object) -> None:
        sent.append(str(options["url"]))
        raise ConnectionRefusedError

    monkeypatch.setattr(s3_client._BoundedSession, "request", note)
    client = S3Client(bucket)
    with pytest.raises(ArchiveError, match="connection refused"):
        await client.get("key")
    await client.close()
    assert {url.partition("?")[0] for url in sent} == {address}


class Sts:
    """Lends keys for the token of a service account: other ones with each request, and each for minutes."""

    def __init__(self, server: S3Server) -> None:
        self.server = server
        self.asked: list[tuple[str, str, str]] = []
        self.status = 200

    async def handle(self, request: web.Request) -> web.Response:
        form = await request.post()
        self.asked.append(tuple(str(form[name]) for name in ("Action", "RoleArn", "WebIdentityToken")))  # type: ignore[arg-type]
        if self.status != 200:
            text = (
                "<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>"
            )
            return web.Response(status=self.status, text=text, content_type="text/xml")
        lent = f"ASIALENT{len(self.asked)}"
        self.server.keys = {lent: (f"secret of {lent}", f"token of {lent}")}
        until = (SystemClock().now() + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
        text = (
            '<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
            f"<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{lent}</AccessKeyId>"
            f"<SecretAccessKey>secret of {lent}</SecretAccessKey><SessionToken>token of {lent}</SessionToken>"
            f"<Expiration>{until}</Expiration></Credentials></AssumeRoleWithWebIdentityResult>"
            "</AssumeRoleWithWebIdentityResponse>"
        )
        return web.Response(text=text, content_type="text/xml")


ROLE = "arn:aws:iam::123456789012:role/podlife"


@pytest.fixture
async def sts(server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sts]:
    """The environment of a pod whose service account has a role."""
    made = Sts(server)
    server.keys = {}
    async with served(made.handle) as url:
        for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        token = tmp_path / "token"
        token.write_text("projected")
        use(
            monkeypatch,
            {
                "AWS_ENDPOINT_URL_S3": server.url,
                "AWS_ENDPOINT_URL_STS": url,
                "AWS_ROLE_ARN": ROLE,
                "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
            },
        )
        yield made


async def test_the_role_of_a_service_account_is_assumed_with_the_token_of_now(
    server: S3Server, sts: Sts, archive: S3Archive, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await archive.check()
    assert sts.asked == []
    await archive.put(make_entry())
    assert sts.asked == [("AssumeRoleWithWebIdentity", ROLE, "projected")]
    (tmp_path / "token").write_text("rotated")
    assert await archive.get("default", "web", UID) == make_entry()
    # What is lent for minutes is lent again before it ends.
    assert sts.asked[1:] == [("AssumeRoleWithWebIdentity", ROLE, "rotated")]
    assert server.refused == []
    assert "of ASIALENT" not in caplog.text


async def test_a_role_that_is_refused_is_told_and_nothing_counts_as_missing(
    server: S3Server, sts: Sts, archive: S3Archive, caplog: pytest.LogCaptureFixture
) -> None:
    sts.status = 403
    caplog.set_level(logging.DEBUG)
    for call in (archive.put(make_entry()), archive.get("default", "web", UID)):
        with pytest.raises(ArchiveError, match="AssumeRoleWithWebIdentity answers 403 AccessDenied"):
            await call
    assert server.requests == []
    assert "Traceback" not in caplog.text


async def test_a_token_that_is_not_there_is_told_in_one_line(
    server: S3Server, sts: Sts, archive: S3Archive, tmp_path: Path
) -> None:
    (tmp_path / "token").unlink()
    with pytest.raises(ArchiveError, match=f"No such file or directory: '{tmp_path}/token'"):
        await archive.put(make_entry())
    assert server.requests == []
    assert sts.asked == []


async def test_a_profile_of_the_user_s_is_used(
    server: S3Server, archive: S3Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    given = server.environment
    (tmp_path / "credentials").write_text(
        f"[ci]\naws_access_key_id={given['AWS_ACCESS_KEY_ID']}\n"
        f"aws_secret_access_key={given['AWS_SECRET_ACCESS_KEY']}\n"
    )
    monkeypatch.setenv("AWS_PROFILE", "ci")
    await archive.put(make_entry())
    assert (len(server.objects), server.refused) == (1, [])


async def test_an_authority_of_the_user_s_is_trusted_and_no_other(
    server: S3Server, archive: S3Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority()
    async with served(server.handle, authority.server_context()) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        with pytest.raises(ArchiveError, match=r"it cannot be reached: .*certificate verify failed"):
            await archive.put(make_entry())
        await archive.close()
        (tmp_path / "ca.pem").write_bytes(authority.pem)
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "ca.pem"))
        await archive.put(make_entry())
        # The server compares the signed hash with the entry.
        assert (len(server.objects), server.refused) == (1, [])
        await archive.close()
