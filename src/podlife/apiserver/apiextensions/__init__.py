"""Custom resources: the resources that CustomResourceDefinitions add to the catalog.

A definition passes its strategy (`strategies.apiextensions`). `controller` gives it its conditions and sets its `rows`
in the catalog. A custom resource is a `Resource` like any other: its strategy and its decoding come from a structural
schema (`api.structural`).
"""
