"""`python -m hpcvdj`: the command of the same name."""

from hpcvdj.cli import main

if __name__ == "__main__":
    main()
