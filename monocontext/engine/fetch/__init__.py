"""Fetch stored data: requests, the threads that carry them out, and the cache of decoded values."""
