"""`podlife sim`: the commands and their output."""
