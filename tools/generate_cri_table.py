"""Write the table of CRI messages of the containerd runtime, from CRI's own definition.

The table names the messages and fields that the runtime uses; numbers and types come from `api.proto` of the module
k8s.io/cri-api, in the version that the real parts are built from. To use another message or field, add its name to
the table and run this. The same definition gives the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

TOOLS = Path(__file__).parent
TARGET = TOOLS.parent / "src/podlife/kubelet/runtimes/containerd/cri_table.py"
DOWNLOAD_SECONDS = 300
# Where the table starts and ends in its file.
START, END = 'CRI = """\n', '"""\n'
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ENUM = re.compile(r"^enum (\w+)", re.MULTILINE)
# CRI has no braces inside a message; one with braces would not be found, and be reported if it is used.
_MESSAGE = re.compile(r"^message (\w+)\s*\{([^{}]*)\}", re.MULTILINE)
_FIELD = re.compile(
    r"(repeated\s+)?(map\s*<\s*string\s*,\s*string\s*>|\w+)\s+(\w+)\s*=\s*(\d+)(?:\s*\[[^\]]*\])?"
)
_SCALARS = ("", "bool", "int32", "uint32", "int64", "uint64", "bytes")
_WIDTH = 118


class TableError(Exception):
    """The table cannot be generated. The text is one line that says what to change."""


def downloaded_proto() -> str:
    """CRI's definition, from the Go module proxy or the module cache, checked against go.sum by `go`."""
    try:
        run = subprocess.run(
            ["go", "mod", "download", "-json", "k8s.io/cri-api"],
            check=False,
            cwd=TOOLS / "real-parts",
            env={**os.environ, "GOFLAGS": "", "GOWORK": "off"},
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_SECONDS,
        )
    except FileNotFoundError:
        raise TableError("there is no Go to download k8s.io/cri-api: install Go, or use --proto") from None
    except subprocess.TimeoutExpired:
        raise TableError(f"k8s.io/cri-api did not arrive within {DOWNLOAD_SECONDS} s: use --proto") from None
    # An error of the download is in the answer; an earlier one is on stderr.
    answer = json.loads(run.stdout or "{}")
    if run.returncode != 0:
        reason = " ".join((answer.get("Error") or run.stderr).split())
        raise TableError(f"go could not download k8s.io/cri-api: {reason}")
    return (Path(answer["Dir"]) / "pkg/apis/runtime/v1/api.proto").read_text(encoding="utf-8")


def parsed(proto: str) -> dict[str, dict[str, str]]:
    """By message and field what the table says of a field, like `7:Mount*`; raises TableError."""
    definition = _COMMENT.sub("", proto)
    enums = set(_ENUM.findall(definition))
    messages: dict[str, dict[str, str]] = {}
    for message, body in _MESSAGE.findall(definition):
        fields = messages[message] = {}
        for statement in filter(None, map(str.strip, body.split(";"))):
            match = _FIELD.fullmatch(statement)
            if match is None:
                raise TableError(f"cannot parse {statement!r} of message {message}: extend this tool")
            repeated, kind, name, number = match.groups()
            if kind.startswith("map"):
                fields[name] = f"{number}%"
                continue
            suffix = "" if kind == "string" else ":int32" if kind in enums else f":{kind}"
            fields[name] = f"{number}{suffix}{'*' if repeated else ''}"
    return messages


def generate(current: str, proto: str) -> str:
    """The file of the table with the names it has and what `proto` says of them; raises TableError."""
    before, start, rest = current.partition(START)
    table, end, after = rest.partition(END)
    messages = parsed(proto)
    rows = [line.split() for line in table.replace("\\\n", "").splitlines() if line]
    used = {row[0] for row in rows}
    lines = []
    for message, *fields in rows:
        if message not in messages:
            raise TableError(f"CRI has no message {message}: remove it from the table")
        line = message
        for field in (text.partition("=")[0] for text in fields):
            if (found := messages[message].get(field)) is None:
                raise TableError(f"CRI has no field {message}.{field}: remove it from the table")
            kind = found.rstrip("*%").partition(":")[2]
            if kind not in _SCALARS and kind not in used:
                raise TableError(f"{message}.{field} is of type {kind}: add this message to the table")
            line += f" {field}={found}"
        lines += [f"{part} \\\n" for part in textwrap.wrap(line, _WIDTH, break_on_hyphens=False)]
        lines[-1] = lines[-1].replace(" \\", "")
    return "".join([before, start, *lines, end, after])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--proto", type=Path, help="the definition to use instead of a downloaded one")
    options = parser.parse_args()
    try:
        proto = options.proto.read_text(encoding="utf-8") if options.proto else downloaded_proto()
        TARGET.write_text(generate(TARGET.read_text(encoding="utf-8"), proto), encoding="utf-8")
    except (TableError, OSError) as error:
        print(f"cri-table: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
