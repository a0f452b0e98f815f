"""Record the columns of the server-side tables from a running kube-apiserver.

    python tools/record_columns.py --server https://127.0.0.1:6443 --token TOKEN

asks it for a table of every stored resource of ours and writes `printers/columns.json`: names, descriptions,
types, formats and priorities as clients of the real server see them, so that nobody types them by hand.
"""

from __future__ import annotations

import argparse
import json
import ssl
import urllib.request
from pathlib import Path

from podlife.apiserver.resource_table import STORED

TARGET = Path(__file__).parents[1] / "src/podlife/apiserver/printers/columns.json"
ACCEPT = "application/json;as=Table;v=v1;g=meta.k8s.io"


def columns_of(server: str, token: str, api_version: str, plural: str) -> list[dict[str, object]]:
    root = "apis" if "/" in api_version else "api"
    request = urllib.request.Request(
        f"{server}/{root}/{api_version}/{plural}?limit=1",
        headers={"Accept": ACCEPT, "Authorization": f"Bearer {token}"},
    )
    # A test server's certificate is its own; nothing secret is sent to it.
    context = ssl._create_unverified_context()
    with urllib.request.urlopen(request, context=context, timeout=30) as answer:
        columns: list[dict[str, object]] = json.load(answer)["columnDefinitions"]
    return columns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    options = parser.parse_args()
    recorded = {
        row.key: columns_of(options.server, options.token, row.api_version, row.plural)
        for row in STORED
        if not row.stored_as
    }
    TARGET.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
