"""Run the command line, as `python -m monocontext`."""

from monocontext.cli import main

main()
