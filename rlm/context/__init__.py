"""Describe a context, shorten text and values, and call the optional methods that a context may offer."""
