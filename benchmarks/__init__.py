"""Benchmarks: `python -m benchmarks NAME`. Ratios within one run; losing rows are printed too."""
