"""The controllers of Kubernetes' own workloads, built on pod control and nothing else.

Each runs on any API server: `podlife controllers run`, or in a program of one's own with a `ControlPlane`.
"""
