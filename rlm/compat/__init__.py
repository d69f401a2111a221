"""The classes of other packages: `RLM_REPL` of rlm-minimal, and models of DSPy."""
