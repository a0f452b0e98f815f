"""When an image is pulled, where a container does not say."""

from __future__ import annotations

import re
from functools import lru_cache

from podlife.memory import CACHED_VALUES

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN = rf"(?:{_HOST}(?:\.{_HOST})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_LONGEST_IMAGE, _LONGEST_NAME = 1024, 255
_image = re.compile(
    rf"(?P<name>(?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
).fullmatch


def pull_policy(image: str) -> str:
    """Always for what may change under its name: `latest`, or no tag and no digest."""
    return _pull_policy(image) if len(image) <= _LONGEST_IMAGE else "IfNotPresent"


@lru_cache(maxsize=CACHED_VALUES)
def _pull_policy(image: str) -> str:
    match = _image(image)
    if match is None or len(match["name"]) > _LONGEST_NAME:
        return "IfNotPresent"
    tag = match["tag"] or ("" if match["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"
