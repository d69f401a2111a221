"""`python -m monocontext`."""

from monocontext.cli import main

main()
