"""Why rows of a table are excluded, as kinds with details: other code never has to parse a sentence."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from string import Formatter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import few, told


class ExclusionKind(Enum):
    """A kind of reason.

    message  the text for users about a single row; the names in braces are the details of an `Exclusion` of this kind
    summary  the text about all rows of the kind
    option   the option that keeps such rows, if there is one
    kept     which of these rows the option keeps
    listed   whether users are interested in how many rows have which details
    """

    NO_SEQUENCE = "no {field}", "no {field}"
    TOO_SHORT = (
        "junction of {length} nt is shorter than its two anchor codons",
        "junction shorter than its two anchor codons",
    )
    TOO_LONG = "CDR3 of {length} nt is longer than {longest} nt", "CDR3 longer than {longest} nt"
    LONG_JUNCTION = "junction of {length} nt is longer than {longest} nt", "junction longer than {longest} nt"
    OTHER_LETTER = "{field} contains {letter!r}, not only A, C, G, T", "{field} with letters other than A, C, G, T"
    AMINO_ACIDS = (
        "{field} contains {letter!r}, not only A, C, G, T; these seem to be amino acids",
        "{field} that seems to be amino acids (for pgen call the column junction_aa)",
    )
    STOP_CODON = "{field} has a stop (*)", "{field} with a stop"
    OTHER_SYMBOL = (
        "{field} contains {letter!r}, no amino acid and no symbol of the alphabet",
        "{field} with other letters than amino acids and symbols of the alphabet",
    )
    SEVERAL_RESIDUES = (
        "{field} contains {letter!r}, which stands for several amino acids; this needs each",
        "{field} with a symbol for several amino acids",
    )
    OUT_OF_FRAME = (
        "{field} contains {letter!r}, as of a junction that is out of frame",
        "{field} of a junction that is out of frame",
    )
    LONG_AMINO_ACIDS = (
        "{field} of {length} amino acids is longer than {longest}",
        "{field} longer than {longest} amino acids",
    )
    NOT_PRODUCTIVE = (
        "{field} is not productive: not whole codons from C to F, V or W without a stop",
        "{field} that is not productive",
        "{normalize=none}",
    )
    UNPRODUCTIVE = (
        "{field} is not productive: not whole codons from C to F, V or W without a stop, which this needs",
        "{field} that is not productive",
    )
    MARKED_UNPRODUCTIVE = (
        "the table says that the row is not productive, though its junction is",
        "row that is not productive, as the table says",
    )
    NO_COUNT = (
        "duplicate_count {text!r} is no whole number from 1 to 10^15",
        "duplicate_count that is no whole number from 1 to 10^15",
    )
    MISSING_COUNT = "no duplicate_count, which other rows have", "no duplicate_count, which other rows have"
    INCOMPLETE = "incomplete rearrangement: the read has no V", "incomplete rearrangement (the read has no V)"
    READ_ENDS = (
        "the read ends {missing} nt before the junction's end, and J does not complete it",
        "read that ends before the junction's end and is not completed from J",
    )
    OTHER_AMINO_ACIDS = "junction does not fit its amino acids", "junction that does not fit its amino acids"
    NO_CYSTEINE = (
        "junction begins with {codon}, not with the codon of Cys 104 (TGT, TGC)",
        "junction that does not begin with the codon of Cys 104",
    )
    UNPLACED = (
        "amino acids do not show where in the read the junction is: {why}",
        "read in which amino acids do not show where the junction is",
    )
    NO_CALL = "no {segment} call", "no {segment} call"
    AMBIGUOUS_CALL = "ambiguous {segment} call {call}", "ambiguous {segment} call", "{ambiguous_calls=first}"
    FAMILY_CALL = (
        "{segment} call {family} is a family of several genes; pathways are those of one gene",
        "{segment} call of a family of several genes",
    )
    UNLISTED_GENE = (
        "{segment} gene {gene} is not in the germline table",
        "{segment} gene that is not in the germline table",
    )
    UNLISTED_ALLELE = (
        "{segment} allele {allele} is not in the germline table, other alleles of {gene} are",
        "{segment} allele that is not in the germline table, though other alleles of the gene are",
        "{unlisted_alleles=first}",
    )
    NOT_IN_MODEL = "{segment} gene {name} is not in the model", "{segment} gene that is not in the model"
    ALLELE_NOT_IN_MODEL = (
        "{segment} allele {allele} is not in the model, other alleles of {gene} are",
        "{segment} allele that is not in the model, though other alleles of the gene are",
        "{missing_alleles=gene}",
        True,
        "them, in commands that have it",
    )
    TIE_NOT_IN_MODEL = (
        "{segment} gene {name} of the call {call} is not in the model",
        "{segment} gene that is not in the model",
    )
    OTHER_LOCUS = (
        "{segment} gene {name} is of locus {locus} (the {reference} is of {own})",
        "of locus {locus} (the {reference} is of {own})",
        "",
        False,
    )
    PARTIAL_JUNCTION = "partial junction", "partial junction"
    NOT_CUT = (
        "the junction cannot be cut out of the read: it does not have junction_aa exactly once",
        "junction that cannot be cut out of the read",
    )
    NOT_A_CELL = "contig is not of a cell", "contig that is not of a cell", "{format=10x_all}"
    LOW_CONFIDENCE = "contig of low confidence", "contig of low confidence", "{format=10x_all}"
    SEVERAL_CHAINS = "contig of several chains", "contig of several chains"
    TWO_LOCI = "V is of locus {v_locus}, J of {j_locus}", "V and J of different loci"
    MISCALLED = (
        "{segment} call {call} contradicts the bases",
        "call that contradicts the bases",
        "{keep_misfits}",
    )
    REPEATED_ID = (
        "sequence_id repeats that of data row {data_row}{table}",
        "sequence_id that repeats that of an earlier row",
        "{together}",
        False,
        "those that have another repertoire_id, in commands that have it",
    )

    def __init__(self, message: str, summary: str, option: str = "", listed: bool = True, kept: str = "them") -> None:
        self.message, self.summary, self.option, self.listed, self.kept = message, summary, option, listed, kept

    @property
    def remedy(self) -> str:
        """How to keep such rows, in words; empty if that is not possible."""
        return f"{told(self.option)} keeps {self.kept}" if self.option else ""


@dataclass(frozen=True)
class Exclusion:
    """Why a row is excluded: a kind, and the details that its message names, as (name, value) pairs."""

    kind: ExclusionKind
    details: tuple[tuple[str, str | int], ...]

    @staticmethod
    def of(kind: ExclusionKind, **details: str | int) -> "Exclusion":
        return Exclusion(kind, tuple(details.items()))

    @staticmethod
    def from_json(kind: str, details: str) -> "Exclusion":
        """Return the inverse of `kind.name` and `details_json` in results.  Raise KeyError for an unknown kind."""
        return Exclusion(ExclusionKind[kind.upper()], tuple(json.loads(details).items()))

    @staticmethod
    def from_text(text: str) -> "Exclusion":
        """Return the inverse of `text`."""
        kind, _, details = text.partition(" ")
        return Exclusion.from_json(kind, details)

    @property
    def text(self) -> str:
        """Kind and details as a text, which formats of tables give to readers of junctions."""
        return f"{self.kind.name} {self.details_json()}"

    def details_json(self) -> str:
        return json.dumps(dict(self.details), ensure_ascii=False)

    def __str__(self) -> str:
        return self.kind.message.format(**dict(self.details))

    def get(self, name: str) -> str | int | None:
        """Return the detail of that name, or None if this kind does not have it."""
        return dict(self.details).get(name)

    @property
    def summary(self) -> str:
        return self.kind.summary.format(**dict(self.details))

    @property
    def particulars(self) -> str:
        """The details that are in the message but not in the summary, such as the gene; empty if there are none."""
        fields = [field for _, field, _, _ in Formatter().parse(self.kind.summary)]
        values = [str(value) for name, value in self.details if name not in fields]
        first, *others = [value if value.strip() else repr(value) for value in values] or [""]
        return f"{first} ({', '.join(others)})" if others else first


@dataclass(frozen=True)
class ExcludedRows:
    """Excluded rows, in row order.

    row            int64 [rows]: 0-based data rows of the input
    sequence_id    the id of each row
    code           int32 [rows]: the index of each row's exclusion in `exclusions`
    exclusions     the exclusions, without repeats
    repertoire_id  the repertoire of each row if tables were counted together; else empty
    """

    row: NDArray[np.int64]
    sequence_id: Sequence[str]
    code: NDArray[np.int32]
    exclusions: Sequence[Exclusion]
    repertoire_id: Sequence[str]

    @staticmethod
    def of(
        row: NDArray[np.int64],
        sequence_id: Sequence[str],
        exclusions: Iterable[Exclusion],
        repertoire_id: Sequence[str] = (),
    ) -> "ExcludedRows":
        """Make excluded rows of the exclusion of each row."""
        code_of: dict[Exclusion, int] = {}
        code = np.array([code_of.setdefault(exclusion, len(code_of)) for exclusion in exclusions], dtype=np.int32)
        return ExcludedRows(row, sequence_id, code, list(code_of), repertoire_id)

    def __len__(self) -> int:
        return len(self.row)

    def __repr__(self) -> str:
        kinds = by_summary(self.counts())
        reasons = few(f"{rows:,} {summary}" for summary, rows, _ in kinds)
        return f"<{len(self):,} excluded rows{': ' * bool(reasons)}{reasons}>"

    def exclusion(self, index: int) -> Exclusion:
        """Return why the row at `index` (of `row`) is excluded."""
        return self.exclusions[int(self.code[index])]

    @property
    def messages(self) -> list[str]:
        """The reason of each row, in words."""
        texts = [str(exclusion) for exclusion in self.exclusions]
        return [texts[code] for code in self.code.tolist()]

    def counts(self) -> list[tuple[Exclusion, int]]:
        """Return each exclusion and its number of rows, the most frequent first."""
        rows = np.bincount(self.code, minlength=len(self.exclusions)).tolist()
        return added([zip(self.exclusions, rows, strict=True)])


def by_summary(counts: Iterable[tuple[Exclusion, int]]) -> list[tuple[str, int, list[tuple[Exclusion, int]]]]:
    """Group exclusions by summary: (summary, rows, exclusions and rows of the group), the most frequent first."""
    groups: dict[str, list[tuple[Exclusion, int]]] = {}
    for exclusion, rows in counts:
        groups.setdefault(exclusion.summary, []).append((exclusion, rows))
    totals = [(summary, sum(rows for _, rows in group), group) for summary, group in groups.items()]
    return sorted(totals, key=lambda item: (-item[1], item[0]))


def added(parts: Iterable[Iterable[tuple[Exclusion, int]]]) -> list[tuple[Exclusion, int]]:
    """Add up the counts of several parts; the most frequent exclusion is first."""
    total: Counter[Exclusion] = Counter()
    for part in parts:
        total.update(dict(part))
    return sorted(total.items(), key=lambda item: (-item[1], str(item[0])))


def counts_json(counts: Iterable[tuple[Exclusion, int]]) -> list[list[Any]]:
    """Return the counts as JSON values: [kind, details, rows]."""
    return [[exclusion.kind.name.lower(), dict(exclusion.details), rows] for exclusion, rows in counts]


def counts_from_json(values: Iterable[Sequence[Any]]) -> list[tuple[Exclusion, int]]:
    """Return the inverse of `counts_json`."""
    return [(Exclusion(ExclusionKind[kind.upper()], tuple(details.items())), rows) for kind, details, rows in values]
