"""Search a text: `grep` by line, `search` by words, `outline`, and `explain`, which tells what a search would read."""
