"""The effective grace period of a pod. Pure.

Once set it only shrinks, and it is never less than a second.
"""

from __future__ import annotations


def effective_grace(
    stored: int, *, deletion: int | None = None, override: int | None = None, spec: int | None = None
) -> int:
    """`stored` is what the pod has by now, 0 when nothing; `deletion` is what the API server set, `override` what the
    kubelet asks for, `spec` what the pod asked for itself (PW-40)."""
    grace, is_given = stored, False
    if deletion is not None and (grace == 0 or deletion < grace):
        grace, is_given = deletion, True
    # A deletion with no grace counts as none set here, as it does upstream (PW-46).
    if override is not None and (grace == 0 or override < grace):
        grace, is_given = override, True
    if not is_given and grace == 0 and spec is not None:
        grace = spec
    # Upstream lets the same zero lengthen a grace that was given before; here it never grows.
    return max(1, min(grace, stored) if stored else grace)
