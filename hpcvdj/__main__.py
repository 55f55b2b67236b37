"""The process of the command `hpcvdj`, or `python -m hpcvdj`."""

import os
import signal
import sys

from hpcvdj.runs.launcher import leave_launch, let_root_speak


def main() -> None:
    """Run the command.  This function never returns."""
    # While modules load, there is nothing to clean up.  A launcher ends all ranks if a signal ends one.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # numpy's products are small.  Its threads would wait for the next one on every core, and a sum that several threads
    # share depends on their number.
    for library in ("OPENBLAS", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    try:
        from hpcvdj.cli import startup

        startup.load_little()
        from hpcvdj import cli
    except ImportError as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            # numpy's own message is a page of advice.
            cause = cause.__cause__
        fault = " ".join(str(cause).split())
        let_root_speak()
        print(f"hpcvdj: error: cannot start ({fault[:300]}); install hpcvdj again in this environment", file=sys.stderr)
        leave_launch(1)
        sys.exit(1)
    cli.main()


if __name__ == "__main__":
    main()
