"""`python -m hpcvdj`: the command of the same name."""

from hpcvdj.cli import main

main()
