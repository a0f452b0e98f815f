"""A whole cluster on one machine: the daemons as supervised processes, with a state directory and a control socket.

`session.run` brings a cluster up, shows it through a `Display` and takes it down again. `control_socket.ask` talks to
one that runs, `state_dir` finds it, and `leftovers` cleans up after one that was killed.
"""
