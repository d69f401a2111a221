"""Calls of models within a budget: retries, cache, prices, usage, and the sub-calls of cells."""
