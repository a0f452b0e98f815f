"""CertificateSigningRequests: approves those of kubelets, signs approved ones and removes old ones.

Three controllers of kube-controller-manager, under its names and with its rules and messages.
"""

from podlife.certificates.controllers import (
    CsrApprovingController,
    CsrCleanerController,
    CsrSigningController,
)

__all__ = ["CsrApprovingController", "CsrCleanerController", "CsrSigningController"]
