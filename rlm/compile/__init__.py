"""Compile new sessions of agents into the brief with which the next one begins."""
