"""`python -m rlm`."""

from rlm.cli.commands import main

main()
