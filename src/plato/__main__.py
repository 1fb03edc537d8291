"""`python -m plato`: the command, where it is not on the path."""

from plato.cli.main import main

main()
