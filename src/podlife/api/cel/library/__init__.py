"""Functions of Kubernetes' environment that are not part of the language: strings, lists, addresses, quantities."""
