"""Human-readable sizes."""

from __future__ import annotations


def format_size(number: int) -> str:
    """As Kubernetes writes it: 1Gi, 1.5Mi, 700."""
    size, units = float(number), ["", "Ki", "Mi", "Gi", "Ti"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        del units[0]
    return f"{size:.1f}".removesuffix(".0") + units[0]
