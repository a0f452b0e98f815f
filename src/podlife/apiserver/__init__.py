"""Embedded API server: the Kubernetes API in one Python process, for a laptop, a test or a single node.

`server.ApiServer` is the whole server; `assembly.assemble` builds its handler without a socket. Nothing is imported
here, so that `settings` stays cheap to import.
"""
