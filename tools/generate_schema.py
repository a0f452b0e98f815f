"""Write the generated data of `podlife.api.schema`, from Kubernetes itself.

`types.json.gz` comes from Kubernetes' Go types (printed by `tools/schema-types`; needs go) and from the OpenAPI
documents, which alone say how lists and maps merge. `documents.xz` comes from the OpenAPI documents of a running
kube-apiserver, cut down to the resources that podlife serves:

    python tools/generate_schema.py --server https://127.0.0.1:6443 --token TOKEN

The same Kubernetes gives the same bytes. Without --server only the types are written, with the documents that exist.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import lzma
import re
import shutil
import ssl
import subprocess
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from podlife.api.schema import openapi_documents
from podlife.api.schema.table import go_type
from podlife.apiserver.resource_table import RESOURCES

TOOLS = Path(__file__).parent
TARGET = TOOLS.parent / "src/podlife/api/schema"
PARAMETER = re.compile(r'"#/parameters/([^"]+)"')
# An apply is YAML, but most clients send JSON.
OTHER_ENCODING = re.compile(r"application/(?!apply-patch\+yaml).*(protobuf|cbor|yaml)")
REFERENCE = re.compile(r'"(?:#/components/schemas/|#/definitions/)([^"]+)"')


def encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()


def go_types() -> dict[str, Any]:
    """What Kubernetes' own types say of themselves, in the version that the real parts are built from."""
    with tempfile.TemporaryDirectory() as folder:
        for source in ("real-parts/go.mod", "real-parts/go.sum", "schema-types/main.go"):
            shutil.copy(TOOLS / source, folder)
        run = subprocess.run(["go", "run", "-mod=mod", "."], cwd=folder, check=True, stdout=subprocess.PIPE)
    dump: dict[str, Any] = json.loads(run.stdout)
    return dump


def row_of(field: dict[str, Any]) -> list[Any]:
    """A field as `podlife.api.schema.table.Field` reads it, without what is as usual."""
    go_name = field["g"] if field["g"] != go_type(field["t"]) else ""
    flags = [field.get("p", False), field.get("k", False)]
    row = [field["n"], field["t"], field["#"] or [], *flags, *(field.get(key, "") for key in "sme"), go_name]
    while row[-1] in ("", False):
        row.pop()
    return row


def table_of(dump: dict[str, Any], documents: dict[str, bytes]) -> bytes:
    types = {key: [row_of(field) for field in fields or ()] for key, fields in dump["types"].items()}
    return encoded(with_merge_types({"kinds": dump["kinds"], "types": types}, documents))


def with_merge_types(table: dict[str, Any], documents: dict[str, bytes]) -> dict[str, Any]:
    """The table with what server-side apply needs: how lists and maps merge, and the defaults of their keys."""
    schemas: dict[str, Any] = {}
    for path, document in documents.items():
        if path.startswith("v3/"):
            schemas |= json.loads(document)["components"]["schemas"]
    named = {key_of(name): schema for name, schema in schemas.items()}
    keys = {
        key for schema in schemas.values() for each in properties(schema).values() for key in map_keys(each)
    }
    for name, rows in table["types"].items():
        fields = properties(named.get(name, {}))
        for row in rows:
            field = fields.get(row[0], {})
            default = field.get("default") if row[0] in keys else None
            # The empty default of a struct: only scalars are keys of lists.
            default = None if default == {} else default
            row.extend([[], False, False, "", "", "", "", "", None][len(row) - 2 :])
            row[9:] = [merge_of(field), default]
            while row[-1] is None or (row[-1] in ("", False) and len(row) < 11):
                row.pop()
    atomic = [name for name in table["types"] if named.get(name, {}).get("x-kubernetes-map-type") == "atomic"]
    return {**table, "atomic": sorted(atomic)}


def key_of(name: str) -> str:
    """`io.k8s.api.core.v1.Pod` is `core.Pod` in the table; of other versions than v1, `autoscalingv2.MetricSpec`."""
    group, version, kind = name.split(".")[-3:]
    return f"{group}{version if version[:1] == 'v' and version != 'v1' else ''}.{kind}"


def properties(schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = schema.get("properties", {})
    return found


def map_keys(field: dict[str, Any]) -> list[str]:
    keys: list[str] = field.get("x-kubernetes-list-map-keys", [])
    return keys


def merge_of(field: dict[str, Any]) -> str:
    """`podlife.api.schema.Field.merge` of a field: empty if it is as usual."""
    match field.get("x-kubernetes-list-type") or field.get("x-kubernetes-map-type"):
        case "map":
            return f"map:{','.join(map_keys(field))}"
        case "set" | "granular" as merge:
            return str(merge)
        case "atomic" if field.get("type") == "object":
            return "atomic"
    return ""


def served_paths() -> set[str]:
    """Every path of the OpenAPI documents that podlife answers on."""
    paths = set()
    for row in RESOURCES:
        prefix = f"/apis/{row.group}/{row.version}" if row.group else f"/api/{row.version}"
        collection = f"{prefix}/{'namespaces/{namespace}/' * row.namespaced}{row.plural}"
        paths |= {f"{prefix}/", collection, f"{prefix}/{row.plural}", f"{collection}/{{name}}"}
        paths |= {f"{collection}/{{name}}/{subresource}" for subresource in row.subresources}
        paths |= {f"{collection}/{{name}}/proxy/{{path}}"}
    return paths


def trimmed(document: dict[str, Any], paths: set[str]) -> dict[str, Any]:
    """The document with these paths only, what they refer to, and JSON as the only encoding."""
    kept = {path: without_other_encodings(item) for path, item in document["paths"].items() if path in paths}
    # Only the older format shares parameters between paths.
    named = set(PARAMETER.findall(json.dumps(kept)))
    parameters = {name: document["parameters"][name] for name in named}
    schemas = document["definitions"] if "definitions" in document else document["components"]["schemas"]
    wanted = set(REFERENCE.findall(json.dumps([kept, parameters])))
    pending = list(wanted)
    while pending:
        found = set(REFERENCE.findall(json.dumps(schemas[pending.pop()]))) - wanted
        wanted |= found
        pending += found
    used = {name: schemas[name] for name in wanted}
    if "definitions" in document:
        return {**document, "paths": kept, "parameters": parameters, "definitions": used}
    return {**document, "paths": kept, "components": {**document["components"], "schemas": used}}


def without_other_encodings(value: Any) -> Any:
    if isinstance(value, list):
        return [
            without_other_encodings(item)
            for item in value
            if not (isinstance(item, str) and OTHER_ENCODING.match(item))
        ]
    if isinstance(value, dict):
        return {
            key: without_other_encodings(item) for key, item in value.items() if not OTHER_ENCODING.match(key)
        }
    return value


def documents_of(server: str, token: str) -> dict[str, bytes]:
    """The documents by the path under /openapi that serves them."""
    insecure = ssl._create_unverified_context()

    def fetch(path: str) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{server}/openapi/{path}", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request, context=insecure, timeout=60) as answer:
            document: dict[str, Any] = json.load(answer)
            return document

    paths = served_paths()
    groups = sorted({f"apis/{row.group}/{row.version}" if row.group else "api/v1" for row in RESOURCES})
    found = {f"v3/{group}": encoded(trimmed(fetch(f"v3/{group}"), paths)) for group in groups}
    return {**found, "v2": encoded(trimmed(fetch("v2"), paths))}


def packed(documents: dict[str, bytes]) -> bytes:
    """One stream, so that what the documents share is stored once: a line of JSON that says where each
    document is and what its hash is, then the documents."""
    index, offset = {}, 0
    for path, document in documents.items():
        index[path] = [offset, len(document), hashlib.sha512(document).hexdigest().upper()]
        offset += len(document)
    return lzma.compress(
        encoded(index) + b"\n" + b"".join(documents.values()), preset=9 | lzma.PRESET_EXTREME
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", help="a kube-apiserver that runs, for the OpenAPI documents")
    parser.add_argument("--token", default="")
    options = parser.parse_args()
    if options.server:
        (TARGET / "documents.xz").write_bytes(packed(documents_of(options.server, options.token)))
    documents = {path: openapi_documents.document(path) or b"" for path in openapi_documents.hashes()}
    # No time and no name in the header, or the bytes would differ from run to run.
    (TARGET / "types.json.gz").write_bytes(gzip.compress(table_of(go_types(), documents), 9, mtime=0))
    for name in ("types.json.gz", "documents.xz"):
        print(f"{name}: {(TARGET / name).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
