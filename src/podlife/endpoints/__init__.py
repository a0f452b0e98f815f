"""Endpoints of Services: the addresses of the pods that a Service selects, as EndpointSlices and as Endpoints.

Three controllers of kube-controller-manager, under its names. `endpoint` says which endpoint a pod is, `slices` and
`subsets` where it goes (all pure); `controllers` writes what differs. `mirroring` makes slices of the Endpoints of
Services without a selector.
"""

from podlife.endpoints.controllers import EndpointsController, EndpointSliceController
from podlife.endpoints.mirroring import EndpointSliceMirroringController

__all__ = ["EndpointSliceController", "EndpointSliceMirroringController", "EndpointsController"]
