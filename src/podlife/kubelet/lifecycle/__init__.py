"""The rules by which a pod lives on a node, one subject per module: phase, conditions, container statuses, restarts,
backoff, grace, probes, admission, environment.

Pure: what is known goes in, what is to be shown or done comes out. Nothing here asks for the time, talks to a runtime
or to the API server, or changes what it was given. Pods and statuses are plain API objects; containers as a runtime
knows them are `podlife.kubelet.runtime.ContainerStatus`.
"""
