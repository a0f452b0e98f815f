"""`/exec`: commands in containers, with their streams over a WebSocket or over SPDY/3.1."""
