"""Output of `podlife gc policy check`, `show` and `schema`. They connect to nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from podlife.cli.commands.gc.options import PolicyOptions
from podlife.cli.output import as_json, counted
from podlife.podgc.policy import Policy
from podlife.podgc.policy.parse import MOST_BYTES, PolicyError, load_policy, read_policy_bytes
from podlife.podgc.policy.schema import policy_schema
from podlife.podgc.policy_printing import as_document, in_words

_STANDARD_INPUT = "-"


def read_given(name: str) -> Policy:
    """The policy in a file, or on standard input for -; raises PolicyError."""
    if name != _STANDARD_INPUT:
        return load_policy(Path(name))
    return read_policy_bytes(sys.stdin.buffer.read(MOST_BYTES + 1), "<stdin>")


def check_policies(names: Sequence[str]) -> int:
    """Print a line for each valid file, and for each error in the others; returns the exit code."""
    code = 0
    for name in names:
        try:
            policy = read_given(name)
        except PolicyError as error:
            print(error, file=sys.stderr)
            code = 1
        else:
            print(f"{name}: {_counted(policy)}")
    return code


def show_policy(options: PolicyOptions, name: str, output: str) -> int:
    settings = options.flags()
    try:
        policy = read_given(name) if name else options.policy_file()
    except PolicyError as error:
        print(error, file=sys.stderr)
        return 1
    if output == "text":
        print("\n".join(in_words(policy, settings)))
        return 0
    document = as_document(policy or Policy(), settings)
    if output == "json":
        sys.stdout.write(as_json(document))
    else:
        sys.stdout.write(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    return 0


def show_schema() -> None:
    sys.stdout.write(as_json(policy_schema()))


def _counted(policy: Policy) -> str:
    off = sum(not rule.is_on for rule in policy.rules)
    rules = counted(len(policy.rules), "rule") + (f", {off} of them off" if off else "")
    return f"valid: {rules}" + ("; observe-only" if policy.guards.is_observing else "")
