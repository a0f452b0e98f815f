"""HTTP server of the API server, on aiohttp: the only package here that knows a web framework."""

from podlife.apiserver.http.bodies import HttpLimits
from podlife.apiserver.http.server import HttpServer

__all__ = ["HttpLimits", "HttpServer"]
