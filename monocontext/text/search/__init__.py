"""Search a text: `grep` by line, `search` by words, and `outline`."""
