"""Suggested commands with the flags of the cluster that was explained, but no token."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

from podlife.cli.connection import ConnectionOptions
from podlife.explain import Cause, Explanation

# At its beginning, after a pipe, or quoted within a sentence.
_KUBECTL = re.compile(r"(^|\| |`)kubectl ")


def for_this_server(found: Explanation, options: ConnectionOptions) -> Explanation:
    flags = _flags(options)
    if not flags:
        return found
    return replace(found, causes=tuple(_with_flags(cause, flags) for cause in found.causes))


def _flags(options: ConnectionOptions) -> str:
    given = {
        "--kubeconfig": options.kubeconfig,
        "--context": options.context,
        "--server": options.server,
        "--certificate-authority": options.certificate_authority,
        "--as": options.request_as,
    }
    words = [shlex.quote(f"{flag}={value}") for flag, value in given.items() if value]
    words += ["--insecure-skip-tls-verify"] if options.insecure_skip_tls_verify else []
    return " ".join(words)


def _with_flags(cause: Cause, flags: str) -> Cause:
    def put(text: str) -> str:
        return _KUBECTL.sub(lambda match: f"{match[1]}kubectl {flags} ", text)

    remedies = tuple(replace(each, command=put(each.command)) for each in cause.remedies)
    return replace(cause, text=put(cause.text), remedies=remedies)
