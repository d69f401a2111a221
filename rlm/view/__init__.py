"""Show a recorded run as one page, served while it goes on or written to a file: `rlm view`."""
