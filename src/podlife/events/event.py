"""Creates Event objects. Pure."""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from podlife.api.codec import Object, format_time
from podlife.api.names import check_dns_subdomain

TYPES = frozenset({"Normal", "Warning"})
# An event about what lives in no namespace has to live in one all the same.
_NAMESPACE_OF_THE_CLUSTER = "default"


class Namer:
    """Names as upstream gives them: of the object, and the nanoseconds of the moment.

    Clocks are coarser than that, so two events of one moment must not get the same name: the second would be
    refused as a repetition of the first."""

    def __init__(self) -> None:
        self._last = 0
        # Two recorders that see the same thing at the same microsecond are kept apart by chance.
        self._offset = random.randrange(1000)  # noqa: S311 - keeps names apart, guards nothing

    def name(self, of: str, now: datetime) -> str:
        nanoseconds = int(now.timestamp() * 1_000_000) * 1000 + self._offset
        self._last = nanoseconds = max(nanoseconds, self._last + 1)
        return f"{of}.{nanoseconds:x}" if _begins_a_name(of) else str(uuid.uuid4())


@lru_cache(maxsize=1024)
def _begins_a_name(of: str) -> bool:
    # Not every object's name may be an event's: a role's has colons in it. The sixteen digits behind it always may.
    return not check_dns_subdomain(f"{of}.{0:016x}")


def make_event(
    regarding: Mapping[str, Any], what: tuple[str, str, str], component: str, now: datetime, namer: Namer
) -> Object:
    """`what` is type, reason and message. `regarding` is an ObjectReference; empty fields are left out."""
    type_, reason, message = what
    moment = format_time(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": namer.name(regarding["name"], now),
            "namespace": regarding.get("namespace") or _NAMESPACE_OF_THE_CLUSTER,
        },
        "involvedObject": {field: value for field, value in regarding.items() if value},
        "reason": reason,
        "message": message,
        "type": type_,
        "count": 1,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": "",
    }
