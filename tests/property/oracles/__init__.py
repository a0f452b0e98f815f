"""Reference models that the properties compare with."""
