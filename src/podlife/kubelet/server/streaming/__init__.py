"""`/exec`: commands in containers, with streams over a WebSocket or SPDY/3.1."""
