"""Many simulated nodes in one process, and what is to happen to them and to their pods."""
