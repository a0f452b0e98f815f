"""`podlife controllers`: the commands and their options."""
