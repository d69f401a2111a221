"""Search a text by line: `grep`, and `explain`, which tells what a search would read."""
