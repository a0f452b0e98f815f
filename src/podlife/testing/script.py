"""What the simulated containers of a cluster do: rules, of which the last that fits counts.

cluster.behave(Behaviour(stop_seconds=None), pod="web-*")    # ignores TERM
cluster.behave(Behaviour(run_seconds=5, exit_code=1), image="flaky")
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from podlife.kubelet.runtime import ContainerConfig, SandboxConfig
from podlife.kubelet.runtimes.sim import Behaviour


@dataclass(frozen=True, slots=True)
class _Rule:
    behaviour: Behaviour
    pod: str
    namespace: str
    container: str
    image: str

    def fits(self, sandbox: SandboxConfig, container: ContainerConfig) -> bool:
        return (
            fnmatchcase(sandbox.name, self.pod)
            and fnmatchcase(sandbox.namespace, self.namespace)
            and fnmatchcase(container.name, self.container)
            # A pod that names no tag gets one: who writes the rule need not know.
            and (fnmatchcase(container.image, self.image) or container.image == f"{self.image}:latest")
        )


class BehaviourRules:
    """The script of every node's machine."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []

    def add(
        self,
        behaviour: Behaviour,
        *,
        pod: str = "*",
        namespace: str = "*",
        container: str = "*",
        image: str = "*",
    ) -> None:
        self._rules.append(_Rule(behaviour, pod, namespace, container, image))

    def __call__(self, sandbox: SandboxConfig, container: ContainerConfig) -> Behaviour:
        for rule in reversed(self._rules):
            if rule.fits(sandbox, container):
                return rule.behaviour
        return Behaviour()
