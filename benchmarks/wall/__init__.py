"""Measure real clients on real sockets by the wall clock; other programs may run, so only ratios within a run count."""
