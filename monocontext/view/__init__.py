"""The page of `monocontext view`: the documents of a context, its text, searches and versions."""
