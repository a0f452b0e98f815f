"""The same kubectl command on kube-apiserver and on our server: both must say the same.

A `Pair` is one namespace on two servers. `pair("get", "pods")` runs the command on both, holds exit code, output
and errors against each other after taking out what must differ, and gives what ours said. `pair.ours` and
`pair.theirs` run a command on one server alone, where there is nothing to compare or something on purpose to differ.
"""

from __future__ import annotations

import difflib
import os
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tests.real.clients.readings import normalise
from tests.real_parts import Server, part

__all__ = ["Pair", "Said", "kubeconfig_in", "manifest"]


@dataclass(frozen=True)
class Said:
    """What a command left behind: its exit code, its output and its errors."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err

    def difference_from(self, other: Said) -> str:
        """The lines that differ, `-` for the other's and `+` for these; empty when both say the same."""
        return "\n".join(difflib.unified_diff(other._lines(), self._lines(), lineterm="", n=1))

    def _lines(self) -> list[str]:
        errors = [f"stderr: {line}" for line in normalise(self.err).splitlines()]
        return [*normalise(self.out).splitlines(), *errors, f"exit code {self.code}"]


def manifest(*objects: dict[str, Any]) -> str:
    """Objects as the YAML documents that `kubectl -f -` reads."""
    return yaml.safe_dump_all(objects)


def kubeconfig_in(server: Server, namespace: str, who: str = "admin") -> Path:
    """A kubeconfig of mode 0600 whose context stands in the namespace."""
    source = server.kubeconfig if who == "admin" else server.kubeconfig_for(who)
    config = yaml.safe_load(source.read_text())
    for context in config["contexts"]:
        context["context"]["namespace"] = namespace
    path = server.folder / f"{who}-{namespace}.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path


@dataclass(frozen=True)
class Command:
    """A command line of kubectl and what it runs with."""

    arguments: tuple[str, ...]
    stdin: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 60.0


class Pair:
    """One namespace on both servers."""

    def __init__(self, kube: Server, podlife: Server, namespace: str) -> None:
        self.namespace = namespace
        self.kube = kube
        self.podlife = podlife
        self._configs = (kubeconfig_in(podlife, namespace), kubeconfig_in(kube, namespace))

    def __call__(self, *arguments: str, who: str = "admin", code: int = 0, **how: Any) -> Said:
        """Both say the same and end with `code`; gives what ours said."""
        command = Command(arguments, **how)
        configs = self._configs if who == "admin" else self._configs_of(who)
        with ThreadPoolExecutor(2) as pool:
            ours, theirs = pool.map(lambda config: _run(config, command), configs)
        difference = ours.difference_from(theirs)
        assert not difference, f"kubectl {' '.join(arguments)}\n{difference}"
        assert ours.code == code, f"{' '.join(arguments)}: {ours.text}"
        return ours

    def ours(self, *arguments: str, code: int = 0, **how: Any) -> Said:
        """Our server alone, ending with `code`."""
        said = _run(self._configs[0], Command(arguments, **how))
        assert said.code == code, f"{' '.join(arguments)}: {said.text}"
        return said

    def theirs(self, *arguments: str, code: int = 0, **how: Any) -> Said:
        """kube-apiserver alone, ending with `code`."""
        said = _run(self._configs[1], Command(arguments, **how))
        assert said.code == code, f"{' '.join(arguments)}: {said.text}"
        return said

    def get(self, *arguments: str) -> Any:
        """The object, or the list's items, as our server holds it."""
        found = msgspec.json.decode(self.ours("get", *arguments, "-o", "json").out)
        return found["items"] if found["kind"] == "List" else found

    def is_gone(self, *arguments: str) -> bool:
        said = _run(self._configs[0], Command(("get", *arguments)))
        return said.code == 1 and "(NotFound)" in said.err

    def set_status(self, what: str, status: Mapping[str, Any]) -> None:
        """Writes on both servers what a controller or a node's agent would."""
        patch = msgspec.json.encode({"status": status}).decode()
        self("patch", what, "--subresource=status", "--type=merge", "-p", patch)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A command on our server that goes on while the test does something; the caller ends it."""
        return subprocess.Popen(
            [_kubectl(), *arguments],
            env=_environment(self._configs[0]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _configs_of(self, who: str) -> tuple[Path, Path]:
        return kubeconfig_in(self.podlife, self.namespace, who), kubeconfig_in(self.kube, self.namespace, who)


def _run(config: Path, command: Command) -> Said:
    done = subprocess.run(
        [_kubectl(), *command.arguments],
        check=False,
        input=command.stdin,
        env={**_environment(config), **command.environment},
        capture_output=True,
        text=True,
        timeout=command.seconds,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def _environment(config: Path) -> dict[str, str]:
    # A home beside the server's files: what kubectl keeps of one server is never shown for the other.
    return {"PATH": os.environ["PATH"], "HOME": str(config.parent), "KUBECONFIG": str(config)}


@cache
def _kubectl() -> str:
    return str(part("kubectl"))
