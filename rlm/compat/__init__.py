"""Classes with the interface of other packages: `RLM_REPL` of rlm-minimal and DeepRecurse."""
