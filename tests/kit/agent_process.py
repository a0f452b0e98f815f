"""The agent of a node (`podlife node`) as a process."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from tests.kit.component_process import ComponentProcess, running


class AgentProcess(ComponentProcess):
    def __init__(self, folder: Path, kubeconfig: Path, *flags: str, name: str = "n1") -> None:
        super().__init__(folder, "agent", ready="registered")
        self.name = name
        self.data = folder / "node"
        self._kubeconfig = kubeconfig
        self._flags = flags

    @property
    def arguments(self) -> list[str]:
        own = ["--name", self.name, "--data", str(self.data), "--kubeconfig", str(self._kubeconfig)]
        return ["node", *own, "--listen", "127.0.0.1:0", *self._flags]


def running_agent(folder: Path, kubeconfig: Path, *flags: str) -> AbstractContextManager[AgentProcess]:
    """A registered node agent, killed when the block is left. The test has to end its pods."""
    return running(AgentProcess(folder, kubeconfig, *flags))
