"""What the subcommands share: starting the ranks, and options that several of them have."""

from __future__ import annotations

import io
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from hpcvdj.errors import CompleteError, HpcvdjError, InputError, StoppedError
from hpcvdj.runs.ranks import ROOT, World, launched_rank, set_threads, world
from hpcvdj.recombination.germline import MAX_P, MOST_P, Germline, read_germline

_streams: list[Any] = []


class DForms(StrEnum):
    """How D forms count."""

    paper = "paper"
    distinct = "distinct"


class SequenceField(StrEnum):
    """Which AIRR field holds the sequence."""

    junction = "junction"
    cdr3 = "cdr3"


class Policy(StrEnum):
    """What becomes of a call that names no single listed allele."""

    exclude = "exclude"
    first = "first"


class DAlleles(StrEnum):
    """Which D alleles take part."""

    first = "first"
    all = "all"


Junctions = Annotated[
    Path,
    typer.Argument(
        help="AIRR rearrangement table: TSV (plain or .gz) or Parquet with sequence_id, v_call, j_call, junction.",
        metavar="JUNCTIONS",
        show_default=False,
    ),
]
GermlineFile = Annotated[
    Path,
    typer.Option(
        "--germline", "-g", metavar="TSV", help="Germline table; inputs/germline/ holds mouse and human ones.",
        show_default=False,
    ),
]  # fmt: skip
DFormsOption = Annotated[
    DForms,
    typer.Option(
        "--d-forms",
        help="Count D forms once per pair of chew-backs, as the paper does, or each distinct string once per gene.",
    ),
]
DAllelesOption = Annotated[
    DAlleles,
    typer.Option("--d-alleles", help="D alleles that take part: each functional gene's first listed, or all."),
]
MaxP = Annotated[int, typer.Option("--max-p", min=0, max=MOST_P, help="Most P-nucleotides at one terminus.")]
FieldOption = Annotated[
    SequenceField,
    typer.Option(
        "--sequence-field",
        help="AIRR field to read: junction (with the Cys and Phe/Trp codons, which are taken off) or cdr3.",
    ),
]
AmbiguousOption = Annotated[
    Policy,
    typer.Option("--ambiguous-calls", help="Rows with several calls (TRBV6-2,TRBV6-3): exclude, or take the first."),
]
UnlistedOption = Annotated[
    Policy,
    typer.Option(
        "--unlisted-alleles",
        help="Rows with an allele that the table lacks, of a gene that it lists: exclude, or take the gene's first.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, help="CPU threads per rank.", show_default="the host's cores over its ranks"),
]
StrictBinding = Annotated[
    bool, typer.Option("--strict-binding", help="Fail, not warn, if two ranks have the same GPU.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the output file if it exists.")]
MAX_P_DEFAULT = MAX_P


def hush() -> None:
    """Silence the ranks above root until they begin work: a usage error is printed once, not once per rank."""
    if launched_rank() != ROOT:
        _streams[:] = [sys.stdout, sys.stderr]
        sys.stdout = sys.stderr = io.StringIO()


def begin(threads: int | None = None) -> World:
    """Start work: the arguments are well formed, so every rank may speak of its failures."""
    if _streams:
        sys.stdout, sys.stderr = _streams
        _streams.clear()
    current = world()
    set_threads(current, threads)
    return current


def load_germline(path: Path, max_p: int = MAX_P, d_alleles: DAlleles = DAlleles.first) -> Germline:
    """The germline table at `path`."""
    return read_germline(path, max_p=max_p, d_alleles=d_alleles.value)


def parse_max_n(text: str) -> int | str:
    """`--max-n`: a number, or `all`."""
    if text == "all":
        return text
    if not text.isdigit():
        raise InputError(f"--max-n {text!r}: give a number such as 10, or all")
    return int(text)


def parse_range(option: str, text: str) -> range:
    """`0-10`, or one number, as the range from the first to the last, both included."""
    first, _, last = text.partition("-")
    if not first.isdigit() or not (last or first).isdigit() or int(last or first) < int(first):
        raise InputError(f"{option} {text!r}: give a range such as 0-10, or one number")
    return range(int(first), int(last or first) + 1)


def complain(error: HpcvdjError) -> None:
    """One line of trouble, or of there being nothing to do, to stderr."""
    kind = "" if isinstance(error, StoppedError | CompleteError) else "error: "
    print(f"hpcvdj: {kind}{error}", file=sys.stderr)


def say(line: str = "") -> None:
    """One line of the summary, to stdout."""
    print(line)
