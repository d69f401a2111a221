"""Memories as DSPy programs. `monocontext.dspy` is the public path."""
