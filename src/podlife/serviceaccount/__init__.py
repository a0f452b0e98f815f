"""What every namespace has: the service account `default` and the ConfigMap `kube-root-ca.crt`.

Controllers of kube-controller-manager, under its names. An object that is deleted is created again while its namespace
is active; a ConfigMap that was changed is corrected. A third one fills in the secrets that hold tokens.
"""

from podlife.serviceaccount.controllers import RootCaCertPublisher, ServiceAccountController
from podlife.serviceaccount.tokens_controller import TokensController

__all__ = ["RootCaCertPublisher", "ServiceAccountController", "TokensController"]
