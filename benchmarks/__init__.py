"""Benchmarks: `python -m benchmarks NAME`. Compare figures within one run only; rows that lose are printed too."""
