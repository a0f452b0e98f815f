"""The limit of open files of a process: each connection needs one, and clients decide their number."""

from __future__ import annotations

_MOST = 65_536


def allow_many_open_files(most: int = _MOST) -> None:
    """Raise the limit as far as the system permits, but not above `most`."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if hard == resource.RLIM_INFINITY else min(hard, most)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
