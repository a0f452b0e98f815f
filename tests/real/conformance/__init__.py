"""Kubernetes' own conformance suite, unmodified, against `podlife up`.

    python -m tests.real.conformance                      the chapter sig-api-machinery
    python -m tests.real.conformance --chapter apps       what runs and surrounds pods: sig-apps, sig-cli, sig-auth, ...
    python -m tests.real.conformance --focus Namespaces   the specs of the chapter whose names match

The cluster is the one that a user gets: nothing is prepared in it. No spec is skipped. Those that do not pass are
listed in `docs/parity.md` with the reason; the run fails if one is missing there, and if a listed one passes.
"""
