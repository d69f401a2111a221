"""Run the command `rlm`: `python -m rlm`."""

from rlm.cli import main

main()
