"""Measure answers: `rlm` over lazy texts beside other ways to answer, at any size, with any model."""
