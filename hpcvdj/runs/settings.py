"""Settings of how a run starts and ends.  Only the command line has these options."""

from typing import Annotated

from hpcvdj.options import Option, Settings, setting
from hpcvdj.runs.ranks import PATIENCE_SECONDS

SAVE_SECONDS = 20.0
"""Seconds that finished work may wait to be saved."""

Overwrite = Annotated[bool, Option("replace the output if it exists")]
Resume = Annotated[bool, Option("continue an unfinished run, if there is one")]
Threads = Annotated[
    int | None,
    Option("CPU threads per rank", unset="the host's cores over its ranks", least=1, more=True),
]


class Launch(Settings):
    """How ranks start."""

    threads: Threads = None
    patience: float = setting("seconds to wait for a rank that hangs before giving up", PATIENCE_SECONDS, least=1,
                              infinite=True, more=True)  # fmt: skip


class Started(Settings):
    """How a run begins, and how it saves its work."""

    resume: Resume = False
    batch_rows: int | None = setting(
        "take slices of this many rows, each read, computed and written by one rank, for tables larger than memory; 0: "
        "all rows at once. Not for bitwise and baseline", None, least=0, more=True,
        unset="of a table at most 262,144; of a result all rows, 4,194,304 if there are over 16,777,216")  # fmt: skip
    checkpoint_every: float = setting("seconds after which finished work is saved", SAVE_SECONDS, least=0, more=True)
    overwrite: Overwrite = False
