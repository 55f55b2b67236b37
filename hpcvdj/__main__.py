"""The process of the command `hpcvdj`, or `python -m hpcvdj`."""

import sys


def main() -> None:
    """Run the command; never returns."""
    try:
        from hpcvdj.cli import startup

        startup.load_little()
        from hpcvdj import cli
    except ImportError as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            # numpy's own message is a page of advice.
            cause = cause.__cause__
        said = " ".join(str(cause).split())
        print(f"hpcvdj: error: cannot start ({said[:300]}); install hpcvdj again in this environment", file=sys.stderr)
        sys.exit(1)
    cli.main()


if __name__ == "__main__":
    main()
