"""Run code that was written for other packages: the keywords and results of `rlms` and `rlm-minimal`."""
