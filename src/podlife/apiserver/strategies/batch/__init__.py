"""Strategies of batch/v1."""
