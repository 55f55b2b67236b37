"""Kinds of source: subclasses of `Source`, which the command line, detection and documentation read."""

from pathlib import Path
from typing import ClassVar

from hpcvdj.errors import InputError, choice, choices
from hpcvdj.germline_import.genes import Gene
from hpcvdj.storage.text import read_text

AUTO = "auto"
"""The name that stands for the kind that recognises a source."""


class Source:
    """A kind of source.

    name     as users give it
    summary  for the help and the documentation
    """

    name: ClassVar[str]
    summary: ClassVar[str]

    def recognises(self, path: Path) -> bool:
        """Whether the source is of this kind."""
        raise NotImplementedError

    def read(self, path: Path) -> list[Gene]:
        """The source's alleles; InputError if it is not of this kind or is damaged."""
        raise NotImplementedError


def summaries() -> str:
    """The kinds of source, for messages and help."""
    return "; ".join(f"{name}: {kind.summary}" for name, kind in choices(Source).items())


def source_kind(path: Path, name: str = AUTO) -> Source:
    """The kind called `name`, or the one that recognises the source."""
    if name != AUTO:
        return choice(Source, name, "source_format")
    for kind in choices(Source).values():
        if kind().recognises(path):
            return kind()
    raise InputError(f"{path}: not a known kind of source; give one of {summaries()}")


def source_text(path: Path) -> str:
    """The text of a source's file, without blanks before it; InputError if it is empty."""
    text = read_text(path, "source file", f"give one of {summaries()}").lstrip()
    if not text:
        raise InputError(f"{path}: the file is empty; download it again")
    return text
