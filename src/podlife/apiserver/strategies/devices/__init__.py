"""resource.k8s.io: devices that nodes offer, classes of them, and claims for them."""
