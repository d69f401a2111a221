"""Adapters that pass a `Monocontext` to other packages, one module for each; none of these is a dependency.

`rlms` makes the text a variable of the code that `rlms` runs; `monocontext.dspy` does so for DSPy. With `fsspec`, all
libraries that read by fsspec can read texts. With `deepagents`, the documents of a text are the files of a deep agent.
"""
