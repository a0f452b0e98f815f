"""How many files a process may have open: a connection is one, and strangers decide how many of those there are."""

from __future__ import annotations

__all__ = ["allow_many_open_files"]

_WANTED = 65_536


def allow_many_open_files() -> None:
    """As many as the system grants without asking for more rights."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(hard, _WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
