"""Human-readable sizes and ages."""

from __future__ import annotations


def format_size(number: int) -> str:
    """As Kubernetes writes it: 1Gi, 1.5Mi, 700."""
    size, units = float(number), ["", "Ki", "Mi", "Gi", "Ti"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        del units[0]
    return f"{size:.1f}".removesuffix(".0") + units[0]


def format_age(seconds: float) -> str:
    """As Go reads it: 720h, 90s."""
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
