"""Embedded API server: the Kubernetes API in one Python process, for a laptop, a test or a single node."""
