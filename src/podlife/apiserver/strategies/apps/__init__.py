"""Strategies of apps/v1, and of ReplicationControllers, which share theirs."""
