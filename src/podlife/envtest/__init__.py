"""The programs that controller-runtime's envtest starts, so that Go operators' tests run on podlife's API server.

`write_assets` fills a folder for KUBEBUILDER_ASSETS with `kube-apiserver` (see `kube_apiserver`), an `etcd` that only
reports its health, since the API server has its own store, and the user's kubectl. As in envtest itself, there are no
controllers: nothing is garbage collected, and deleted namespaces stay Terminating.
"""

from podlife.envtest.assets import default_folder, write_assets
from podlife.envtest.kube_apiserver import parse_flags

__all__ = ["default_folder", "parse_flags", "write_assets"]
