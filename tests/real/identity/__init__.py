"""Identity of pods beside upstream, and in-cluster clients of others."""
