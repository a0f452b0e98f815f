"""The scenarios: each is a class that makes every step happen and checks it, with the texts of its steps."""
