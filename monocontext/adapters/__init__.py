"""Adapters that pass a `Monocontext` to other packages, one module for each; none is a dependency.

`rlms` has the text in cells of that package (`monocontext.dspy` in those of DSPy). With `fsspec`, every library that
reads with fsspec can read texts. With `deepagents`, the documents of a text are the files of a deep agent.
"""
