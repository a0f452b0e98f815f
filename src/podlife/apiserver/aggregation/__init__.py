"""The aggregator: groups and versions that an APIService says another API server serves.

`proxy` sends requests there, with the user's name in headers that a client certificate vouches for; `controller`
checks whether the server is available, says so in the APIService, and offers its resources in discovery.
`local_api_services` registers what this server serves itself.
"""
