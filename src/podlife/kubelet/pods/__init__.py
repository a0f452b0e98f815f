"""The life of pods on a node: what is wanted, what there is, and the steps from the one to the other.

`changes` looks at the runtime and `cache` keeps what it saw; `loop` takes in what is wanted and tells the workers;
`steps` does what they decide, with `starting`, `killing` and `images`; `housekeeping` ends what is not wanted
and `container_gc` removes what is left of it.
"""
