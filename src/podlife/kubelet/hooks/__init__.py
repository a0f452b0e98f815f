"""The hooks of containers, postStart and preStop: `HookRunner` is the `Hooks` of `podlife.kubelet.interfaces`.

Left to the caller: when a hook runs, how long it may take (it is cancelled), and the event, which says only that the
hook failed.
"""

from podlife.kubelet.hooks.runner import HookRunner

__all__ = ["HookRunner"]
