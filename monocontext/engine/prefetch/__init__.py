"""Predict a caller's next reads, and fetch their data ahead."""
