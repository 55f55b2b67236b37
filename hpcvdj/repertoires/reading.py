"""How junctions are read: which column, which rows, which letters."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from hpcvdj.errors import InputError, OptionError, log, option, require_choice
from hpcvdj.recombination import repertoire
from hpcvdj.recombination.alphabet import NUCLEOTIDES, Letters
from hpcvdj.recombination.calls import CallPolicy, Genes
from hpcvdj.recombination.exclusions import ExclusionKind
from hpcvdj.recombination.symbols import PRODUCTIVE_END, Alphabet
from hpcvdj.repertoires.formats.format import BY_HEADER, Opening


@dataclass(frozen=True)
class Reading:
    """How junctions are read.

    sequence_field  the AIRR field of the sequence: `junction`, or `cdr3` without the two anchor codons; with an
                    alphabet `junction_aa`, or `cdr3_aa` without the two conserved residues
    calls           what happens to calls that do not name one listed allele
    strict          whether the first row that cannot be counted is an InputError
    longest         nucleotides of the longest sequence
    anchors         whether the two anchor codons are kept
    genes           with a model, whether calls are read
    alphabet        the symbols of amino acids; None if sequences are nucleotides
    productive      the reason to exclude rows whose junction is not productive; None to keep them
    opening         how tables are opened
    reads           whether read counts are read, from tables that have them
    ambiguous       whether amino acids may have symbols that stand for several
    """

    sequence_field: repertoire.SequenceField | repertoire.JunctionField = "junction"
    calls: CallPolicy = field(default_factory=CallPolicy)
    strict: bool = False
    longest: int = repertoire.LONGEST_CDR3
    anchors: bool = False
    genes: Genes = "call"
    alphabet: Alphabet | None = None
    productive: ExclusionKind | None = None
    opening: Opening = BY_HEADER
    reads: bool = False
    ambiguous: bool = True

    def __post_init__(self) -> None:
        fields = get_args(repertoire.SequenceField) if self.alphabet is None else get_args(repertoire.JunctionField)[1:]
        require_choice("sequence_field", self.sequence_field, fields)

    @property
    def letters(self) -> Letters:
        return self.alphabet or NUCLEOTIDES

    @property
    def columns(self) -> list[str]:
        calls = ["v_call", "j_call"] if self.genes == "call" else []
        return ["sequence_id", *calls, self.sequence_field]

    @property
    def trim(self) -> int:
        """Letters that are removed from both ends."""
        return 0 if self.anchors else repertoire.ANCHOR_LETTERS[self.sequence_field]

    def of_junctions(self, genes: Genes, productive: ExclusionKind | None = None) -> "Reading":
        """The same for probabilities: junctions keep the codons of Cys 104 and Phe/Trp 118, which recombination makes.

        genes, productive  as of the class

        OptionError if CDR3s are read.
        """
        if self.sequence_field == "cdr3":
            raise OptionError.of("sequence_field", "cdr3", "a probability is that of a junction")
        return replace(self, longest=repertoire.LONGEST_JUNCTION, anchors=True, genes=genes, productive=productive)

    @property
    def leaves_out_marked(self) -> bool:
        """Whether rows that the table says are not productive take no part."""
        return self.productive is ExclusionKind.UNPRODUCTIVE

    @property
    def ends(self) -> tuple[str, str]:
        """The letters to add at the beginning and at the end of each sequence."""
        if self.sequence_field != "cdr3_aa":
            return "", ""
        first, last = repertoire.CDR3_ENDS
        return first, PRODUCTIVE_END if self.alphabet and PRODUCTIVE_END in self.alphabet.symbols else last

    @property
    def anchor_letters(self) -> int:
        """Letters of each anchor that packed sequences have."""
        return repertoire.ANCHOR_LETTERS[self.sequence_field] - self.trim + len(self.ends[0])


def reading_of(
    columns: Sequence[str],
    sequence_field: repertoire.JunctionField | None,
    alphabet: Alphabet | None,
    opening: Opening = BY_HEADER,
    *,
    strict: bool,
) -> Reading:
    """How junctions of tables with these columns are read for generation probabilities.

    sequence_field  by default the first `JunctionField` among the columns
    alphabet        of amino acids, by default the standard one

    InputError for an alphabet of nucleotides.
    """
    present: list[repertoire.JunctionField] = [
        field for field in get_args(repertoire.JunctionField) if field in columns
    ]
    name = sequence_field or (present or ["junction"])[0]
    if name != "junction":
        if sequence_field is None:
            log.warning(
                "amino acids are read, from %s: for nucleotides, all tables need a filled column junction", name
            )
        return Reading(name, strict=strict, alphabet=alphabet or Alphabet.of(), opening=opening)
    if alphabet is not None:
        raise InputError(
            "an alphabet is for amino acids, but nucleotides are read; choose "
            f"{option('sequence_field', 'junction_aa')}, or leave {option('alphabet')} out"
        )
    return Reading(name, strict=strict, opening=opening)


def productive_reading(
    fields: Sequence[str] = ("junction",), opening: Opening = BY_HEADER, *, reads: bool = False, genes: Genes = "call"
) -> Reading:
    """How junctions are read, with their anchors, if all must be productive.

    fields  the `JunctionField`s of the tables.  Nucleotides are read if they are among them, else amino acids, without
            symbols that stand for several
    reads   whether read counts are read, from tables that have them
    genes   `any` does without calls
    """
    reading = replace(reading_of(fields, None, None, opening, strict=False), reads=reads, ambiguous=False)
    return reading.of_junctions(genes, ExclusionKind.UNPRODUCTIVE)
