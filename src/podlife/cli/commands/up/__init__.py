"""`podlife up`: the command, its display, and orders to a running cluster."""
