"""Endpoints of Services: the addresses of the pods that a Service selects, as EndpointSlices and as Endpoints.

Two controllers of kube-controller-manager, under its names. `endpoint` says which endpoint a pod is, `slices` and
`subsets` where it goes (all pure); `controllers` writes what differs.
"""

from podlife.endpoints.controllers import EndpointsController, EndpointSliceController

__all__ = ["EndpointSliceController", "EndpointsController"]
