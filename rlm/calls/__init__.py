"""Call models within a budget: retries, cache, prices, usage, and the sub-calls that a cell makes."""
