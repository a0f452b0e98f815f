"""What a simulated container does: a script answers it for every container that is created."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from podlife.kubelet.runtime import ContainerConfig, ExecResult, SandboxConfig


@dataclass(frozen=True, slots=True)
class Behaviour:
    """By default it starts at once, runs for ever and ends as soon as it is asked to.

    Without `run_seconds` it does not end by itself. `stop_seconds` is how long it takes to end when asked;
    None is: not before it is killed. `refusal` keeps it from being created, `start_error` from starting.
    """

    start_seconds: float = 0.0
    run_seconds: float | None = None
    exit_code: int = 0
    stop_seconds: float | None = 0.0
    stop_exit_code: int = 143
    refusal: str = ""
    start_error: str = ""
    out_of_memory: bool = False
    output: tuple[str, ...] = ()
    termination_message: str = ""
    exec: Callable[[Sequence[str]], ExecResult] | None = None


Script = Callable[[SandboxConfig, ContainerConfig], Behaviour]
Pulling = Callable[[str], tuple[float, str]]
"""How many seconds an image takes to pull, and why it does not come; "" where it does."""
