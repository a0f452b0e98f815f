"""The owner wait: finished pods stay until their owner has observed their end.

`step` is the pre-delete step, `reader` reads owners, `status` tells from an owner whether it has observed a pod's end.
"""
