"""`/containerLogs`: container logs in the CRI format, read once or followed as they grow."""
