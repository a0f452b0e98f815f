"""Removal of finalizers from deleted pods whose node no longer exists.

`held_pods` lists such pods, `remover` handles one of them, `round` all of them once, `controller` all the time.
"""
