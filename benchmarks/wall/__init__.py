"""Real clients, real sockets, the clock on the wall: ratios within one run, on a machine that has other work."""
