"""`/exec`, `/attach` and `/portForward`: streams over a WebSocket or SPDY/3.1."""
