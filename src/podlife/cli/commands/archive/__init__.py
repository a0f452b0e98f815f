"""`podlife archive`: the commands and their output."""
