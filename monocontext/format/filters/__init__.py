"""Search filters record which grams occur in each frame of a text, so that a search reads a few rows.

`fold` folds case, `signs` looks at the bytes of that, `grams` and `words` map them to rows, `layout` says where rows
lie, `building` builds a filter, `checking` verifies one, `query` says what a match must contain, and `planner` turns a
query into candidate frames.

Filters are one-hash bitmaps, bit-sliced over groups of frames (the layout of bit-sliced signature files, as in Goodwin
et al., "BitFunnel", SIGIR 2017, and Bingmann et al., "COBS", SPIRE 2019).
"""
