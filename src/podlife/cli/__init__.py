"""The command line: parses arguments, runs daemons, local clusters and demos, and prints.

A user's mistake is one line on standard error and exit code 1 (2 for wrong usage of a command); an unexpected error is
one line too, with a hint how to see the traceback. With JSON logs it is the last record. The same `main` serves
`podlife` and, as a plug-in, `kubectl podlife`. Heavy modules are imported only by the commands that need them.
"""
