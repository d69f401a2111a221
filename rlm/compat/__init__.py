"""Compatibility with other packages: `rlms`, `rlm-minimal`, DSPy and `verifiers`."""
