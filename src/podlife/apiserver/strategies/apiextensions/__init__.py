"""Strategy of the group apiextensions.k8s.io."""
