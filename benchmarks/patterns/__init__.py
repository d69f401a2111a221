"""What models do with a `context`, as small programs: the code that each turn runs, and the truth that it must find."""
