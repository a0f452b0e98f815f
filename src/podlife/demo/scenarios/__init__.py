"""The scenarios: each is a class that triggers and checks every step, with the texts of its steps."""
