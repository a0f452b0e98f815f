"""The status of ResourceQuotas: what they limit, and how much of it is used.

kube-controller-manager's controller of this name. Admission charges what is created; the controller counts what exists
when a quota is new or changed, when something is deleted or ends, and every five minutes.
"""

from podlife.resourcequota.controller import ResourceQuotaController

__all__ = ["ResourceQuotaController"]
