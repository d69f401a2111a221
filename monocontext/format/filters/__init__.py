"""Search filters record which grams occur in each frame of a text, so that a search reads a few rows.

`grams` says which rows a text sets and a search reads, `columns` computes them (with numpy), and `layout` finds them in
objects. `building` and `joining` make filters, and `checking` compares them with the text. A `query` says what to look
for; `engine.filter_planner` plans its search.

A filter is a Bloom filter of one hash for each frame, stored bit-sliced: row by row, not frame by frame, as in Goodwin
et al., "BitFunnel", SIGIR 2017, and Bingmann et al., "COBS", SPIRE 2019.
"""
