"""Describe a context, shorten text and values, and measure what is read of lazy texts."""
