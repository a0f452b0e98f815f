"""podlife: the whole life of a Kubernetes pod, in Python.

Importing the package imports nothing else: every part is imported where it is used.
"""

__version__ = "0.1.0"
