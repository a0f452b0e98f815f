"""Authentication and authorization of callers of the kubelet's server, both by the word of the API server."""
