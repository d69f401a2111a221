"""Show a context on a page: its documents, its text, searches, versions, and reads: `monocontext view`.

`feed` answers the questions of the page in small pieces, `changes` compares two versions, `session` records reads, and
`server` serves all of it.
"""
