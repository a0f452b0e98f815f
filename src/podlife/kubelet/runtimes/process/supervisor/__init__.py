"""The processes beside the kubelet: one launcher, and one supervisor per running container.

This package imports only the standard library: neither site-packages nor podlife. The launcher imports it once; a
supervisor is a fork of the launcher and shares all memory pages it has not written to. Reference counting writes, so a
supervisor does as little as possible before it sleeps and leaves the rest to short-lived forks.
"""
