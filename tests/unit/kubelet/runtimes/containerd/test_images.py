"""The names of images, and why one could not be had."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from podlife.kubelet.runtime import ContainerRuntimeError, ImagePullError, RuntimeUnavailableError
from podlife.kubelet.runtimes.containerd import images

_SHA = "a" * 64


@pytest.mark.parametrize(
    "name",
    [
        "busybox",
        "busybox:1.36",
        "library/busybox",
        "example.com/team/web:v1.2-rc_3",
        "localhost:5000/web",
        "[::1]:5000/web",
        f"example.com/web@sha256:{_SHA}",
        f"example.com/web:1@sha256:{_SHA}",
        f"sha256:{_SHA}",
        "a__b/c--d/e.f",
    ],
)
def test_a_name_that_may_be_an_image_is_taken(name: str) -> None:
    images.check_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        " busybox",
        "Busybox",
        "busybox:",
        "busybox:a:b",
        "example.com/",
        "a..b",
        "web@sha256:abc",
        "a" * 256,
        "x\n",
    ],
)
def test_a_name_that_can_be_no_image_is_refused(name: str) -> None:
    with pytest.raises(ImagePullError, match="invalid reference format") as refused:
        images.check_name(name)
    assert refused.value.reason == "InvalidImageName"


@pytest.mark.parametrize(
    ("text", "reason", "shown"),
    [
        ("pull access denied", "ErrImagePull", "pull access denied"),
        (
            "RegistryUnavailable: it is down",
            "RegistryUnavailable",
            "image pull failed for web:1 because the registry is unavailable: it is down",
        ),
        (
            "SignatureValidationFailed: no key",
            "SignatureValidationFailed",
            "image pull failed for web:1 because the signature validation failed: no key",
        ),
    ],
)
async def test_the_reason_is_the_one_a_kubelet_shows(
    monkeypatch: pytest.MonkeyPatch, text: str, reason: str, shown: str
) -> None:
    with pytest.raises(ImagePullError) as refused:
        await images.pull_image(failing(monkeypatch, ContainerRuntimeError(text)), "web:1")
    assert (refused.value.reason, str(refused.value)) == (reason, shown)


async def test_a_daemon_that_cannot_tell_whether_an_image_is_here_is_an_inspect_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ImagePullError, match="broken store") as refused:
        await images.find_image(failing(monkeypatch, ContainerRuntimeError("broken store")), "web:1")
    assert refused.value.reason == "ImageInspectError"
    with pytest.raises(RuntimeUnavailableError):
        await images.find_image(failing(monkeypatch, RuntimeUnavailableError("away")), "web:1")


def failing(monkeypatch: pytest.MonkeyPatch, failure: ContainerRuntimeError) -> Any:
    """A daemon that answers everything with one failure."""
    # The messages need protobuf, which not everybody has who runs these tests.
    monkeypatch.setattr(images, "message", lambda _: dict)
    return SimpleNamespace(call=AsyncMock(side_effect=failure))
