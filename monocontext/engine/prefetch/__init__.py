"""Fetch data ahead of a caller's reads."""
