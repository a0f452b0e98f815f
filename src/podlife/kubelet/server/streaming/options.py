"""Exec options, parsed from the query of a request. Invalid ones are rejected in upstream's words."""

from __future__ import annotations

from dataclasses import dataclass

from podlife.kubelet.server.request import HttpError
from podlife.wire import Query


@dataclass(frozen=True, slots=True)
class ExecOptions:
    command: tuple[str, ...]
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


def exec_options(query: Query) -> ExecOptions:
    asked = {name: query.get(name) == "1" for name in ("input", "output", "error", "tty")}
    # A terminal has one way out.
    stderr = asked["error"] and not asked["tty"]
    if not (asked["input"] or asked["output"] or stderr):
        raise HttpError(400, "you must specify at least 1 of stdin, stdout, stderr")
    command = tuple(query.all("command"))
    if not command or not command[0]:
        raise HttpError(400, "you must specify at least one command for the container")
    return ExecOptions(command, asked["input"], asked["output"], stderr, asked["tty"])
