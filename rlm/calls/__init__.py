"""Call models within a budget, with retries, a cache and prices, and make the sub-calls of cells."""
