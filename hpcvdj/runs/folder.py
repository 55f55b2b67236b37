"""The folder of a run: its identity, and its finished work, from which the run can be continued.

A piece of work is finished when its file `NAME.state` is there, with facts and arrays (`hpcvdj.storage.states`).  The
checksum of the file is also of the identity of the run and of the name, so no run takes a piece for another one.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import hpcvdj
from hpcvdj.errors import CompleteError, HpcvdjError, InputError, MachineError, StoppedError, few, option
from hpcvdj.runs.stopping import NOTHING_YET, told_otherwise
from hpcvdj.storage.damage import MISREAD, damage
from hpcvdj.storage.files import atomic_path
from hpcvdj.storage.inputs import file_state
from hpcvdj.storage.states import Arrays, State, read_state, write_state

Identity = dict[str, Any]
"""What two runs must have in common for one to continue the other, as JSON values by name."""

_RUN = "run.json"
_FORMAT, VERSION = "hpcvdj-run", "hpcvdj"
_COMPLETE = "complete"
"""The fact of a folder whose run has written its result."""

ENDING = ".state"
"""The ending of the files of finished pieces."""


_REPLACES, _RESULT = "replaces", "result"
"""What run.json says of the target: its state as the run began, and that of the result, which gets its name."""


class RunFolder:
    """A folder beside a result, in which an unfinished run keeps its finished work.

    `run.json` in it marks the folder as hpcvdj's and has the identity of the run.  hpcvdj removes only such folders.
    """

    def __init__(self, path: Path, identity: Identity) -> None:
        self.path = path
        # After a round trip, the identity compares equal with that in run.json.
        self.identity: Identity = json.loads(json.dumps(identity))

    def open(
        self, facts: dict[str, Any], *, resume: bool, overwrite: bool, target: Path | None = None
    ) -> dict[str, Any]:
        """Make the folder, or continue with an existing one.  Return the facts of the folder.

        facts   JSON values that a new folder records; an existing folder has its own
        target  where the result goes: a new folder records what is there, which the run may replace

        Raises InputError if the folder has work and neither `resume` nor `overwrite` is true, if it belongs to another
        run, or if hpcvdj did not make it.
        """
        if self.path.exists() or self.path.is_symlink():
            record = self._required_record()
            if record and self._has_files() and not overwrite:
                if not resume:
                    raise InputError(
                        f"{self.path}: has the work of an unfinished run; {option('resume', True)} continues it, "
                        f"{option('overwrite', True)} starts again"
                    )
                # Another version may compute other numbers.
                theirs = {VERSION: record.get(VERSION), **record["identity"]}
                changes = differences(theirs, {VERSION: hpcvdj.__version__, **self.identity})
                if changes:
                    raise InputError(
                        f"{self.path}: belongs to another run ({changes}); start that run with its own options, or "
                        f"{option('overwrite', True)}"
                    )
                if any(type(record["facts"].get(name)) is not type(value) for name, value in facts.items()) or any(
                    isinstance(value, int) and value < 1 for value in record["facts"].values()
                ):
                    raise InputError(f"{self.path}: its {_RUN} is damaged; {option('overwrite', True)} starts again")
                self.forget(".*")
                return dict(record["facts"])
            self.remove()
        try:
            self.path.mkdir(exist_ok=True)
            self._write(facts, **{_REPLACES: _state(target)})
        except OSError as error:
            raise InputError(f"{self.path}: cannot be made ({error.strerror}); write elsewhere") from None
        return facts

    def _write(self, facts: dict[str, Any], **further: Any) -> None:
        record = {"format": _FORMAT, VERSION: hpcvdj.__version__, "identity": self.identity, "facts": facts, **further}
        with atomic_path(self.path / _RUN, overwrite=True) as temporary:
            temporary.write_text(json.dumps(record, indent=1))

    def _required_record(self) -> dict[str, Any] | None:
        """Return the content of run.json, None in an empty folder.  Raise InputError if this is no folder of a run."""
        if not self.path.is_dir() or self.path.is_symlink():
            raise InputError(f"{self.path}: is not a folder, but a run needs a folder of that name; move it away")
        if self._is_foreign():
            raise InputError(
                f"{self.path}: is not the folder of a run: its {_RUN} is missing, damaged, or of another version of "
                "hpcvdj; move the folder away, or write elsewhere"
            )
        return self._record()

    def _is_foreign(self) -> bool:
        return self._record() is None and any(not path.name.startswith(".") for path in self.path.iterdir())

    def _record(self) -> dict[str, Any] | None:
        """Return the content of run.json, or None unless hpcvdj wrote it."""
        try:
            record = json.loads((self.path / _RUN).read_text())
            valid = record["format"] == _FORMAT and all(isinstance(record[key], dict) for key in ("identity", "facts"))
        except MISREAD:
            return None
        return record if valid else None

    def is_same(self) -> bool:
        """Return whether the folder belongs to this run."""
        record = self._record()
        return record is not None and record["identity"] == self.identity

    @property
    def finished(self) -> list[str]:
        """The names of the finished pieces, in their order."""
        return sorted(path.stem for path in self.path.glob(f"*{ENDING}"))

    def has_work(self) -> bool:
        """Return whether the folder belongs to this run and has work."""
        return self.is_same() and self._has_files()

    def may_replace(self, target: Path) -> bool:
        """Return whether what is at the target is what this run began to replace, or its own result."""
        record = self._record()
        if record is None or not self.has_work():
            return False
        return _state(target) in (record.get(_REPLACES), record.get(_RESULT))

    def record_result(self, result: Path) -> None:
        """Record the complete result, so that a run that is killed once this has its name knows it."""
        record = self._required_record() or {}
        self._write(record["facts"], **{_REPLACES: record.get(_REPLACES), _RESULT: _state(result)})

    def _has_files(self) -> bool:
        return any(path.name != _RUN and not path.name.startswith(".") for path in self.path.iterdir())

    def file(self, name: str) -> Path:
        """Return the file that a piece has once it is finished."""
        return self.path / f"{name}{ENDING}"

    def save(self, name: str, facts: Mapping[str, Any], arrays: Arrays = MappingProxyType({})) -> None:
        """Save the facts, JSON values, and the arrays of a piece.  Raise MachineError if the disk is full."""
        try:
            with atomic_path(self.file(name), overwrite=True) as temporary:
                write_state(temporary, facts, arrays, [self.identity, name])
        except MachineError as error:
            raise save_failure(error) from None

    def read(self, name: str, *, checked: bool = True) -> State:
        """Return what `save` saved.  Raise InputError if the file is damaged, or of another run or piece.

        checked  check the arrays, too
        """
        with self.damage(name):
            return read_state(self.file(name), [self.identity, name], checked=checked)

    def damage(self, name: str) -> AbstractContextManager[None]:
        """Within the block, raise InputError if what is read of a piece is damaged."""
        remedies = f"{option('resume', True)} computes it again, or {option('overwrite', True)} starts again"
        return damage(self.file(name), f"remove it, and {remedies}")

    def forget(self, *patterns: str) -> None:
        """Remove the files that match a pattern; without any, those that only an unfinished run needs."""
        for pattern in patterns or (f"*{ENDING}", ".*"):
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)

    def leave(self, error: HpcvdjError) -> HpcvdjError:
        """Leave the folder when the run ends with an error: keep it if it has work.  Return the error to report."""
        if self.has_work():
            self.forget(".*")
            return error
        self.remove()
        # Before the first piece, a signal leaves nothing saved.
        return told_otherwise(error, NOTHING_YET) if isinstance(error, StoppedError) else error

    def finish(self) -> None:
        """Remove the folder of a run whose result is complete.  A run that is killed here left a complete result."""
        self._write({_COMPLETE: True})
        self.remove()

    def is_complete(self) -> bool:
        """Return whether this run was killed while it removed the folder."""
        record = self._record()
        return record is not None and record["identity"] == self.identity and _COMPLETE in record["facts"]

    def remove(self) -> None:
        """Remove the folder if hpcvdj made it.  Remove its mark last, so that a half-removed folder still has it."""
        if self.path.is_symlink() or not self.path.is_dir() or self._is_foreign():
            return
        mark = self.path / _RUN
        for path in sorted(self.path.iterdir(), key=lambda path: path == mark):
            if not path.is_dir():
                path.unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()


def _state(target: Path | None) -> list[int] | None:
    """Return what tells a file or folder from others that may get its name; None if there is none."""
    state = file_state(target) if target is not None else None
    if target is None or state is None:
        return None
    # A folder changes with what is in it, the time of an inode's change with links to it.
    return [*state[:2], *([] if target.is_dir() else [state[3]])]


def raise_if_complete(target: Path, folder: RunFolder) -> None:
    """Raise CompleteError if `target` is the result of the folder's run, and InputError if it is of another run.

    Raise nothing without a target, or if the folder's run began to replace the other result.  Remove the folder if its
    run was killed right after the result got its name.
    """
    # Tables need no HDF5, which is slow to import.
    from hpcvdj.storage.opening import root_attributes

    if not target.exists():
        return
    try:
        identity = dict(json.loads(root_attributes(target)["identity"]))
    except MISREAD:
        raise InputError(
            f"{target}: exists, and is not the result of a run that can be resumed; give another name, or "
            f"{option('overwrite', True)}"
        ) from None
    if is_of_another_run(target, identity, folder.identity, replace=folder.may_replace(target)):
        return
    if folder.is_same():
        folder.remove()
    raise complete(target)


def is_of_another_run(target: Path, theirs: Identity, ours: Identity, *, replace: bool = False) -> bool:
    """Return whether a result has another identity than our run.  Raise InputError if so, unless we may replace it."""
    changes = differences(*(json.loads(json.dumps(identity)) for identity in (theirs, ours)))
    if changes and not replace:
        raise InputError(f"{target}: is of another run ({changes}); give another name, or {option('overwrite', True)}")
    return bool(changes)


def complete(target: Path) -> CompleteError:
    """Return the error that ends a run whose result is there."""
    return CompleteError(f"{target}: is complete already; there is nothing to resume")


def differences(theirs: Identity, ours: Identity) -> str:
    """Return how the identity of another run differs from ours, in words; empty if it does not."""
    names = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
    return "; ".join(_difference(name, theirs.get(name), ours.get(name)) for name in names)


def _difference(name: str, was: Any, now: Any) -> str:
    if isinstance(was, list) and isinstance(now, list) and all(map(_is_entry, was + now)):
        return _of_lists(name, was, now)
    if name == "hpcvdj" and was is None:
        return "an earlier version made it"
    if _is_digest(was) and _is_digest(now):
        return f"{name} has other content"
    return f"{name} was {_in_words(was)}, is {_in_words(now)}"


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _in_words(value: Any) -> str:
    """Return a setting as users give it."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={text}" for key, text in value.items())
    if isinstance(value, list):
        return ", ".join(str(item[0] if _is_entry(item) else item) for item in value) or "not given"
    return "a file" if _is_digest(value) else "not given" if value is None else str(value)


def _is_entry(item: Any) -> bool:
    return isinstance(item, list) and len(item) > 0 and all(isinstance(text, str) for text in item)


def _of_lists(name: str, was: Sequence[Sequence[str]], now: Sequence[Sequence[str]]) -> str:
    """Return how a list of [name, content] entries changed, such as tables and their digests."""
    old, new = (Counter(map(tuple, entries)) for entries in (was, now))
    gone, added = ([str(entry[0]) for entry in (a - b).elements()] for a, b in ((old, new), (new, old)))
    changed = [entry for entry in gone if entry in added]
    if gone and added and len(gone) == len(was) and len(added) == len(now) and not changed:
        return f"other {name}"
    parts = [
        f"{few(entries)} {what}"
        for entries, what in (
            (changed, "changed"),
            ([entry for entry in gone if entry not in changed], f"no longer among the {name}"),
            ([entry for entry in added if entry not in changed], f"new among the {name}"),
        )
        if entries
    ]
    return ", ".join(parts) or f"the {name} in another order"


def save_failure(error: MachineError) -> MachineError:
    """Return the error to raise if saving into the folder of a run fails with `error`."""
    return MachineError(
        f"{error}. What was saved before is complete: free space, then continue with {option('resume', True)}"
    )
