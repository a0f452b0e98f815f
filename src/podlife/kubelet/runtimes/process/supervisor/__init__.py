"""The programs beside the kubelet: one launcher, and one supervisor for every container that runs.

Everything here is imported without site-packages and without podlife: standard library alone. The launcher imports it
once; a supervisor is a fork of it and shares its memory, all but the pages that it has written to. Counting a reference
is writing: so a supervisor does as little as it can before it sleeps, and leaves the rest to forks that soon end or
become other programs.
"""
