"""Sessions of agents, in a home of their own for each test."""

from sessions.conftest import own_home

__all__ = ["own_home"]
