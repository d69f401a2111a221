"""Search filters record which grams occur in each frame of a text, so that a search reads a few rows.

    case_folding          one form for all cases of a text
    grams                 the rows of grams and of words that a text sets, and that a search reads
    columns               the columns of frames and of new and stored filters; it needs numpy
    layout                the place of rows in stored objects
    building, joining     new filters, and the filters of a changed text
    checking              a comparison of stored filters with the text
    query, planner        literals that a match must contain, and the frames that may contain them

A filter is a Bloom filter of one hash for each frame, stored bit-sliced: row by row, not frame by frame, as in Goodwin
et al., "BitFunnel", SIGIR 2017, and Bingmann et al., "COBS", SPIRE 2019.
"""
