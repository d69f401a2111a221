"""Programs over a context on a virtual clock: a real engine, simulated workers and link, exact and seeded times."""
