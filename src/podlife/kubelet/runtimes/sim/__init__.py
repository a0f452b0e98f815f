"""The runtime `sim`: containers that only play a part, by the thousand, in real or virtual time."""

from podlife.kubelet.runtimes.sim.runtime import SimRuntime
from podlife.kubelet.runtimes.sim.world import Behaviour, Pulling, Script, SimWorld

__all__ = ["Behaviour", "Pulling", "Script", "SimRuntime", "SimWorld"]
