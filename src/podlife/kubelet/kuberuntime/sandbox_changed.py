"""Whether a pod needs another sandbox (RS-04, RS-06, RS-07)."""

from __future__ import annotations

from dataclasses import dataclass

from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod_fields import Pod
from podlife.kubelet.runtime import SandboxState


@dataclass(frozen=True, slots=True)
class SandboxNeed:
    """`attempt` is that of the sandbox to make, or of the one that is kept; `sandbox_id` is the newest there is."""

    is_new: bool
    attempt: int = 0
    sandbox_id: str = ""


def sandbox_changed(pod: Pod, observed: ObservedPod) -> SandboxNeed:
    if not observed.sandboxes:
        return SandboxNeed(True)
    newest = observed.sandboxes[0]
    uses_host_network = bool(pod["spec"].get("hostNetwork"))
    another = SandboxNeed(True, newest.config.attempt + 1, newest.id)
    if len(observed.ready_sandboxes) > 1 or newest.state is not SandboxState.READY:
        return another
    if newest.config.host_network is not uses_host_network:
        return SandboxNeed(True, newest.config.attempt + 1)
    if not uses_host_network and not newest.ips:
        return another
    return SandboxNeed(False, newest.config.attempt, newest.id)
