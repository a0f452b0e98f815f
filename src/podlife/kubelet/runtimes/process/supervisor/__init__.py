"""The programs beside the agent: one launcher, and one supervisor for every container that runs.

Everything here is imported without site-packages and without podlife: standard library alone, so that a supervisor
stays small. The launcher imports it once; a supervisor is a fork of it and shares its memory.
"""
