"""Finds and pulls images; errors have the reasons and messages that a waiting container shows."""

from __future__ import annotations

import re

from podlife.kubelet.runtime import (
    ContainerRuntimeError,
    ImagePullError,
    NotFoundInRuntimeError,
    RuntimeUnavailableError,
)

from .client import CriClient
from .messages import message

# A slow pull may take long; after this time it has failed.
_PULL_SECONDS = 3600.0
_MAX_NAME = 255
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_ADDRESS = rf"(?:{_HOST}(?:\.{_HOST})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_ADDRESS}/)?{_PART}(?:/{_PART})*)(?::[\w][\w.-]{{0,127}})?(?:@{_DIGEST})?", re.ASCII
)
_IMAGE_ID = re.compile(r"sha256:[0-9a-f]{64}")
# Error prefixes of the runtime if the image is not at fault, and upstream's text for them.
_SPECIAL = {
    "RegistryUnavailable": "the registry is unavailable",
    "SignatureValidationFailed": "the signature validation failed",
}


async def find_image(client: CriClient, image: str) -> str | None:
    """Raises ImagePullError with `InvalidImageName`, or with `ImageInspectError` if the daemon fails."""
    check_name(image)
    try:
        status = (await client.call("ImageStatus", image=message("ImageSpec")(image=image))).image
    except NotFoundInRuntimeError:
        return None
    except RuntimeUnavailableError:
        raise
    except ContainerRuntimeError as error:
        raise ImagePullError(
            f'Failed to inspect image "{image}": {error}', reason="ImageInspectError"
        ) from None
    if not status.id:
        return None
    # As in a container's `image_ref`: the digest if a registry provided one.
    return str(status.repo_digests[0] if status.repo_digests else status.id)


async def pull_image(client: CriClient, image: str) -> str:
    check_name(image)
    spec = message("ImageSpec")(image=image, user_specified_image=image)
    try:
        await client.call("PullImage", image=spec, seconds=_PULL_SECONDS)
    except RuntimeUnavailableError:
        raise
    except ContainerRuntimeError as error:
        raise _pull_failure(image, str(error)) from None
    # Look it up, so that pulled and present images get the same reference.
    if (reference := await find_image(client, image)) is None:
        raise ImagePullError(f'image "{image}" was removed right after the pull')
    return reference


def check_name(image: str) -> None:
    """Raises ImagePullError for an invalid image name."""
    if _IMAGE_ID.fullmatch(image):
        return
    match = _REFERENCE.fullmatch(image)
    if match is None or len(match["name"]) > _MAX_NAME:
        why = f'couldn\'t parse image name "{image}": invalid reference format'
        raise ImagePullError(f'Failed to apply default image tag "{image}": {why}', reason="InvalidImageName")


def _pull_failure(image: str, text: str) -> ImagePullError:
    for reason, because in _SPECIAL.items():
        if text.startswith(reason):
            detail = f"image pull failed for {image} because {because}{text.removeprefix(reason)}"
            return ImagePullError(detail, reason=reason)
    return ImagePullError(text)
