"""Search filters: for each frame of a text, which 5-grams occur in it; stored so that a needle reads a few rows.

`fold` makes one of all cases, `grams` says which rows, `layout` where they lie, `building` makes them, `planner` asks.
One-hash bitmaps, bit-sliced over groups of frames (the layout is that of bit-sliced signature files, as in Goodwin et
al., "BitFunnel", SIGIR 2017, and Bingmann et al., "COBS", SPIRE 2019).
"""
