"""Programs over a context on a virtual clock: the real engine, a simulated crew and link, exact and seeded times."""
