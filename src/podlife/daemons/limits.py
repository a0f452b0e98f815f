"""How many files a process may have open: a connection is one, and strangers decide how many of those there are."""

from __future__ import annotations

__all__ = ["allow_many_open_files"]

_MOST = 65_536


def allow_many_open_files(most: int = _MOST) -> None:
    """As many as the system grants without asking for more rights, but not more than this."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if hard == resource.RLIM_INFINITY else min(hard, most)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
