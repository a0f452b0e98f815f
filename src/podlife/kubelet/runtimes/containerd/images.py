"""Images: found and pulled, and why one could not be had, in the words that a waiting container shows."""

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

# A registry may be slow; one that has not given an image after this long will not.
_PULL_SECONDS = 3600.0
_MOST_NAME = 255
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_ADDRESS = rf"(?:{_HOST}(?:\.{_HOST})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_ADDRESS}/)?{_PART}(?:/{_PART})*)(?::[\w][\w.-]{{0,127}})?(?:@{_DIGEST})?", re.ASCII
)
_IMAGE_ID = re.compile(r"sha256:[0-9a-f]{64}")
# What a runtime puts before its text where the image is not at fault, and how it is told.
_SPECIAL = {
    "RegistryUnavailable": "the registry is unavailable",
    "SignatureValidationFailed": "the signature validation failed",
}


async def find_image(client: CriClient, image: str) -> str | None:
    """Raises ImagePullError with `InvalidImageName`, or with `ImageInspectError` where the daemon cannot tell."""
    check_name(image)
    try:
        found = (await client.call("ImageStatus", image=message("ImageSpec")(image=image))).image
    except NotFoundInRuntimeError:
        return None
    except RuntimeUnavailableError:
        raise
    except ContainerRuntimeError as error:
        raise ImagePullError(
            f'Failed to inspect image "{image}": {error}', reason="ImageInspectError"
        ) from None
    if not found.id:
        return None
    # As CRI has it in a container's `image_ref`: the digest where a registry gave one.
    return str(found.repo_digests[0] if found.repo_digests else found.id)


async def pull_image(client: CriClient, image: str) -> str:
    check_name(image)
    spec = message("ImageSpec")(image=image, user_specified_image=image)
    try:
        await client.call("PullImage", image=spec, seconds=_PULL_SECONDS)
    except RuntimeUnavailableError:
        raise
    except ContainerRuntimeError as error:
        raise _pull_failure(image, str(error)) from None
    # Asked for, so that pulled and found are told by the same words.
    if (reference := await find_image(client, image)) is None:
        raise ImagePullError(f'image "{image}" was pulled and is not here: somebody removed it')
    return reference


def check_name(image: str) -> None:
    """Raises ImagePullError where this can be the name of no image."""
    if _IMAGE_ID.fullmatch(image):
        return
    match = _REFERENCE.fullmatch(image)
    if match is None or len(match["name"]) > _MOST_NAME:
        why = f'couldn\'t parse image name "{image}": invalid reference format'
        raise ImagePullError(f'Failed to apply default image tag "{image}": {why}', reason="InvalidImageName")


def _pull_failure(image: str, text: str) -> ImagePullError:
    for reason, because in _SPECIAL.items():
        if text.startswith(reason):
            told = f"image pull failed for {image} because {because}{text.removeprefix(reason)}"
            return ImagePullError(told, reason=reason)
    return ImagePullError(text)
