"""Imitate what models do with a `context` by small programs: the code of each turn, and the truth to find."""
