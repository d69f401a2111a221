"""Show a context on a page: its documents, its text, searches, versions, and what was read: `monocontext view`.

`feed` answers the questions of the page in small pieces, `changes` compares two versions, `session` writes down what
was read, `server` hands it all out.
"""
