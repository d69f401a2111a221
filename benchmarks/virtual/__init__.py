"""Run programs on a virtual clock: the engine is real, workers and link are simulated, times are reproducible."""
