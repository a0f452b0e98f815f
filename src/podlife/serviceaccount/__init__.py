"""What every namespace has: the service account `default` and the ConfigMap `kube-root-ca.crt`.

Two controllers of kube-controller-manager, under its names. An object that is deleted is created again while its
namespace is active; a ConfigMap that was changed is corrected.
"""

from podlife.serviceaccount.controllers import RootCaCertPublisher, ServiceAccountController

__all__ = ["RootCaCertPublisher", "ServiceAccountController"]
