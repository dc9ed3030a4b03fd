"""`python -m flows.cli`: the command without an installation."""

from flows.cli import main

main()
