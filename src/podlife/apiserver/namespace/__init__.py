"""Namespaces: their deletion in two steps, the controller that empties them, and those every cluster has."""

from podlife.apiserver.namespace.controller import NamespaceController
from podlife.apiserver.namespace.deletion import create_system_namespaces, delete_namespace

__all__ = ["NamespaceController", "create_system_namespaces", "delete_namespace"]
