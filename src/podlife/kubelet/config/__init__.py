"""Static pods: those that come from files of the node itself, and their mirrors on the API server.

    static = FileSource(Path("/etc/kubernetes/manifests"), "n1", clock)
    ... await static.run(on_change) ...
    mirrors = ApiMirrorClient(client, reporter)
    mirror = await mirrors.ensure(pod, mirror)

Guaranteed: the same file is the same pod (its UID is a digest of what the file says), a file that cannot be used is
told of once and stands in nobody's way, and no pod of another UID is ever deleted. Left to the agent: to run the pods,
and to know which mirrors there are.
"""

from podlife.kubelet.config.file import FileSource
from podlife.kubelet.config.manifest import (
    HASH,
    MIRROR,
    SEEN,
    SOURCE,
    ManifestError,
    read_manifest,
)
from podlife.kubelet.config.mirror import ApiMirrorClient, MirrorOwner, is_mirror_of

__all__ = [
    "HASH",
    "MIRROR",
    "SEEN",
    "SOURCE",
    "ApiMirrorClient",
    "FileSource",
    "ManifestError",
    "MirrorOwner",
    "is_mirror_of",
    "read_manifest",
]
