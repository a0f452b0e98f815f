"""The verbs of the API, one file each, over a `Store` and what each `Strategy` answers."""
