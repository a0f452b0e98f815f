"""The termination message of a container: what it wrote to its file, or the end of its log if it may. Pure.

Reading both, up to the limits below, is left to the caller.
"""

from __future__ import annotations

from podlife.kubelet.pod_fields import Container
from podlife.kubelet.runtime import ContainerStatus

MESSAGE_BYTES = 4096
LOG_BYTES = 2048
LOG_LINES = 80


def is_log_needed(container: Container, known: ContainerStatus) -> bool:
    """One that failed, wrote nothing, and lets its log speak for it."""
    return (
        container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        and bool(known.exit_code)
        and not known.termination_message
    )


def terminated_message(container: Container, known: ContainerStatus, log: str = "") -> str:
    """The runtime's own words come first."""
    own = known.termination_message
    if is_log_needed(container, known):
        own = _end(log)
    return ": ".join(each for each in (known.message, _last_bytes(own, MESSAGE_BYTES)) if each)


def _end(log: str) -> str:
    return _last_bytes("".join(log.splitlines(keepends=True)[-LOG_LINES:]), LOG_BYTES)


def _last_bytes(text: str, bound: int) -> str:
    return text.encode("utf-8", "replace")[-bound:].decode("utf-8", "ignore")
