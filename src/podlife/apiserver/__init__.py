"""The embedded API server: Kubernetes' API in one Python process, for a laptop, a test or a single node."""
