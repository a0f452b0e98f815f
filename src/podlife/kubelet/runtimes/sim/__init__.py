"""The `sim` runtime: thousands of simulated containers, in real or virtual time."""

from podlife.kubelet.runtimes.sim.runtime import SimRuntime
from podlife.kubelet.runtimes.sim.world import Behaviour, Pulling, Script, SimWorld

__all__ = ["Behaviour", "Pulling", "Script", "SimRuntime", "SimWorld"]
