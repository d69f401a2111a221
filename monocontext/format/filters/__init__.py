"""Search filters record which grams occur in each frame of a text, so that a search reads a few rows.

`case_folding` folds case, `suffixes` looks at the folded bytes, `grams` and `words` map them to rows, `layout` locates
rows, `building` builds a filter, `checking` verifies one, `query` holds the literals that a match must contain, and
`planner` turns a query into candidate frames.

Filters are one-hash bitmaps, bit-sliced over groups of frames (the layout of bit-sliced signature files, as in Goodwin
et al., "BitFunnel", SIGIR 2017, and Bingmann et al., "COBS", SPIRE 2019).
"""
