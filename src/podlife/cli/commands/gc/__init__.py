"""`podlife gc`: the commands of the pod garbage collector."""
