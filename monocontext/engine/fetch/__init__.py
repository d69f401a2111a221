"""Fetch stored data: requests, their schedule, hedges, worker threads, and the cache of decoded values."""
