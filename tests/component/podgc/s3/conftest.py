"""A bucket, and an environment that names it and nothing of the machine's."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import aiobotocore.endpoint
import pytest

from podlife.podgc.archive.s3 import S3Archive, S3Reader
from podlife.podgc.archive.s3_client import S3Client
from tests.component.podgc.s3_server import BUCKET, S3Server, serving_s3


def use(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of the machine's, and no waiting between two attempts."""
    for name in os.environ:
        if name.startswith("AWS_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    async def go_on(*_: object) -> None: ...

    monkeypatch.setattr(aiobotocore.endpoint.AioEndpoint, "_sleep", go_on)


@pytest.fixture
async def server(elsewhere: None, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[S3Server]:
    async with serving_s3() as running:
        use(monkeypatch, running.environment)
        yield running


@pytest.fixture
async def archive(server: S3Server) -> AsyncIterator[S3Archive]:
    made = S3Archive(S3Client(BUCKET), "a b/ü")
    yield made
    await made.close()


@pytest.fixture
async def shelf(server: S3Server) -> AsyncIterator[S3Reader]:
    made = S3Reader(S3Client(BUCKET), "a b/ü")
    yield made
    await made.close()
