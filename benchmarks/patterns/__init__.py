"""Imitate what models do with a `context` by small programs: the code of each turn, and the truth to find."""

from benchmarks.patterns.families import FAMILIES
from benchmarks.patterns.mixtures import MIXTURES

PROGRAMS = FAMILIES + MIXTURES
