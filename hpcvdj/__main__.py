"""The process of the command `hpcvdj`, or `python -m hpcvdj`."""

from hpcvdj.cli import startup


def main() -> None:
    """Run the command; never returns."""
    startup.load_little()
    from hpcvdj import cli

    cli.main()


if __name__ == "__main__":
    main()
