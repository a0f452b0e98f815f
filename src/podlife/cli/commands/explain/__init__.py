"""`podlife explain`: the commands, what they read, and their output."""
