"""Small images of our own: a static busybox under the names of the programs that the tests run, and what is added.

Made in memory and always the same bytes, as an archive for a daemon to import and as the blobs that a registry gives.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROGRAMS = (
    "sh sleep echo cat true false id hostname ls env pwd kill ps dd head tail wc nc stty mount ip yes grep"
)
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


@dataclass(frozen=True)
class Image:
    """`blobs` by digest; one of them is the manifest."""

    manifest: str
    blobs: dict[str, bytes]

    def archive(self, *names: str) -> bytes:
        """An OCI layout in a tar, under each of the names."""
        described = {"mediaType": _MANIFEST, "digest": self.manifest, "size": len(self.blobs[self.manifest])}
        manifests = [{**described, "annotations": {"io.containerd.image.name": name}} for name in names]
        files = {f"blobs/{digest.replace(':', '/')}": blob for digest, blob in self.blobs.items()}
        files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": manifests}).encode()
        files["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
        return _tar(files, {})


def make_image(
    busybox: Path,
    *,
    entrypoint: Sequence[str] = ("/bin/sleep", "1000000"),
    command: Sequence[str] = (),
    user: str = "",
    added: Mapping[str, Path | bytes] | None = None,
    links: Mapping[str, str] | None = None,
) -> Image:
    """`added` are programs, and the contents of other files, by their path in the image, without the first slash."""
    programs = {name: each.read_bytes() for name, each in (added or {}).items() if isinstance(each, Path)}
    data = {name: each for name, each in (added or {}).items() if isinstance(each, bytes)}
    files = {
        **programs,
        **data,
        "bin/busybox": busybox.read_bytes(),
        "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
        "etc/group": b"root:x:0:\nnobody:x:65534:\n",
    }
    names = {f"bin/{name}": "busybox" for name in _PROGRAMS.split()} | dict(links or {})
    layer = _tar(files, names, programs)
    # Programs are large, and the image is not kept.
    packed = gzip.compress(layer, 1 if added else 9, mtime=0)
    config = {
        "architecture": _ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": {
            "Env": ["PATH=/bin"],
            "Entrypoint": list(entrypoint),
            "Cmd": list(command),
            "User": user,
        },
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
    }
    configured = json.dumps(config).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": _describe(_CONFIG, configured),
        "layers": [_describe(_LAYER, packed)],
    }
    blobs = [packed, configured, json.dumps(manifest).encode()]
    return Image(_digest(blobs[-1]), {_digest(blob): blob for blob in blobs})


def _describe(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _tar(files: dict[str, bytes], links: dict[str, str], programs: Collection[str] = ()) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for folder in ("bin", "etc", "tmp", "proc", "sys", "dev", "root") if links else ():
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            archive.addfile(entry)
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            is_program = name.startswith("bin/") or name in programs
            entry.size, entry.mode = len(data), 0o755 if is_program else 0o644
            archive.addfile(entry, io.BytesIO(data))
        for name, target in links.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, target, 0o777
            archive.addfile(entry)
    return packed.getvalue()
