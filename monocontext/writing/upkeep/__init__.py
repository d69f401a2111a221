"""Maintain a context: compact, collect garbage, verify, add filters."""
