"""The errors that hpcvdj raises on purpose: each message names the file, the place and the remedy."""


class HpcvdjError(Exception):
    """A failure that the user is told about in one line; `exit_code` is what the command exits with."""

    exit_code = 1

    on_every_rank = False
    """Whether every rank raises it (so that all can leave in order), not this one alone."""

    before_ranks = False
    """Whether the ranks never came together, so that there is nobody to abort."""


class StoppedError(HpcvdjError):
    """A signal ended the run; what it counted is safe, and --resume goes on."""

    exit_code = 75


class CompleteError(HpcvdjError):
    """There is nothing left to do."""

    exit_code = 0

    on_every_rank = True


class InputError(HpcvdjError):
    """Wrong usage or bad input: the user can mend it."""

    exit_code = 2


class MachineError(HpcvdjError):
    """The machine cannot do what was asked: disk full, launcher without its MPI library, and the like."""


class LostRankError(MachineError):
    """A rank does not answer."""


class LauncherError(MachineError):
    """The launcher started more ranks than the MPI library joins."""

    before_ranks = True
