"""Define programs that imitate models at work on a `context`: the code of each turn, and the answer to find."""

from benchmarks.patterns.families import FAMILIES
from benchmarks.patterns.mixtures import MIXTURES

PROGRAMS = FAMILIES + MIXTURES
