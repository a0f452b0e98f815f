"""Strategies of core/v1."""
