"""kubectl in a namespace of one server, and the same command on two: both must say the same.

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

from tests.kit.real_parts import Server, part
from tests.real.clients.readings import normalise


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
    """A command line of kubectl, or of another real part, and what it runs with."""

    arguments: tuple[str, ...]
    stdin: str = ""
    program: str = "kubectl"
    who: str = "admin"
    environment: Mapping[str, str] = field(default_factory=dict)
    # More than anything takes that a command itself waits for.
    seconds: float = 300.0


class One:
    """One namespace on one server, with a kubectl that stands in it."""

    def __init__(self, server: Server, namespace: str) -> None:
        self.server = server
        self.namespace = namespace
        self._config = kubeconfig_in(server, namespace)

    def __call__(self, *arguments: str, code: int = 0, **how: Any) -> Said:
        """Runs a command that ends with `code`."""
        said = self.run(Command(arguments, **how))
        assert said.code == code, f"kubectl {' '.join(arguments)}: {said.text}"
        return said

    def run(self, command: Command) -> Said:
        config = (
            self._config
            if command.who == "admin"
            else kubeconfig_in(self.server, self.namespace, command.who)
        )
        done = subprocess.run(
            [_path(command.program), *command.arguments],
            check=False,
            input=command.stdin,
            env={**_environment(config), **command.environment},
            capture_output=True,
            text=True,
            timeout=command.seconds,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def get(self, *arguments: str) -> Any:
        """The object, or the items of a list."""
        found = msgspec.json.decode(self("get", *arguments, "-o", "json").out)
        return found["items"] if found["kind"] == "List" else found

    def is_gone(self, *arguments: str) -> bool:
        said = self.run(Command(("get", *arguments)))
        return said.code == 1 and "(NotFound)" in said.err

    def wait_for(self, what: str, path: str, value: str, seconds: int = 180) -> None:
        """Waits until the object is there and has this value at a JSONPath."""
        self("wait", what, "--for=create", f"--timeout={seconds}s")
        self("wait", what, f"--for=jsonpath={path}={value}", f"--timeout={seconds}s")

    def set_status(self, what: str, status: Mapping[str, Any]) -> None:
        """Writes what a controller or a node's agent would."""
        self(*_status_patch(what, status))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A command that goes on while the test does something; the caller ends it."""
        return subprocess.Popen(
            [_path("kubectl"), *arguments],
            env=_environment(self._config),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


class Pair:
    """One namespace on both servers."""

    def __init__(self, kube: Server, podlife: Server, namespace: str) -> None:
        self.namespace = namespace
        self.ours = One(podlife, namespace)
        self.theirs = One(kube, namespace)
        self.get = self.ours.get
        self.is_gone = self.ours.is_gone
        self.start = self.ours.start

    def __call__(self, *arguments: str, code: int = 0, **how: Any) -> Said:
        """Both say the same and end with `code`; gives what ours said."""
        command = Command(arguments, **how)
        with ThreadPoolExecutor(2) as pool:
            ours, theirs = pool.map(lambda one: one.run(command), (self.ours, self.theirs))
        difference = ours.difference_from(theirs)
        line = " ".join((command.program, *arguments))
        assert not difference, f"{line}\n{difference}"
        assert ours.code == code, f"{line}: {ours.text}"
        return ours

    def set_status(self, what: str, status: Mapping[str, Any]) -> None:
        self(*_status_patch(what, status))


def _status_patch(what: str, status: Mapping[str, Any]) -> tuple[str, ...]:
    patch = msgspec.json.encode({"status": status}).decode()
    return "patch", what, "--subresource=status", "--type=merge", "-p", patch


def _environment(config: Path) -> dict[str, str]:
    # A home beside the server's files: what kubectl keeps of one server is never shown for the other.
    return {"PATH": os.environ["PATH"], "HOME": str(config.parent), "KUBECONFIG": str(config)}


@cache
def _path(program: str) -> str:
    return str(part(program))
