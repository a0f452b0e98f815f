"""Demos: how pods end, on a cluster of their own. `runner.run` plays one of the scenarios."""
