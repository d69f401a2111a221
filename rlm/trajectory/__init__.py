"""Record a run: its steps, written to a file, read back, and printed."""
