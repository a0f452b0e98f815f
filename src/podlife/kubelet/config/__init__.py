"""The sources of a node's pods: the API server (`api`) and manifest files (`file`), and the mirrors of static pods.

    source = FileSource(Path("/etc/kubernetes/manifests"), "n1", clock, check=check)
    ... await source.run(on_change) ...
    mirrors = ApiMirrorClient(client, reporter)
    mirror = await mirrors.ensure(pod, mirror)

Guarantees:
- The same file is the same pod: its UID is a digest of the manifest.
- An unusable file is logged once and does not affect the others.
- No pod of another UID is ever deleted.

The kubelet runs the pods and knows which mirrors exist.
"""

from podlife.kubelet.config.file import FileSource
from podlife.kubelet.config.manifest import HASH, MIRROR, SEEN, SOURCE, ManifestError, read_manifest
from podlife.kubelet.config.mirror import ApiMirrorClient, is_mirror_of

__all__ = [
    "HASH",
    "MIRROR",
    "SEEN",
    "SOURCE",
    "ApiMirrorClient",
    "FileSource",
    "ManifestError",
    "is_mirror_of",
    "read_manifest",
]
