"""The commands of `podlife`: each parses its options, builds the settings of what it runs, and prints the result."""
