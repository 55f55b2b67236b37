"""The records of a database that take part: their distinct sequences with V and J genes, and their epitopes."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hpcvdj.annotation.settings import DatabaseSettings, Match
from hpcvdj.chance.p_values import Counts
from hpcvdj.errors import InputError, few, option
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.calls import locus_of
from hpcvdj.recombination.germline import SegmentType
from hpcvdj.recombination.models import Alleles, Model
from hpcvdj.recombination.productive import FIRST, LAST
from hpcvdj.recombination.repertoire import LONGEST_JUNCTION
from hpcvdj.recombination.selection import RESIDUES
from hpcvdj.repertoires.databases import Named, Record, Records
from hpcvdj.repertoires.genes import with_all_alleles

Class = tuple[Alleles, Alleles]
"""V and J genes."""

SHORTEST = 5
"""Residues of the shortest junction that takes part."""


_OTHER_SPECIES = "of another species"
_WITHOUT_ENDS = "junction_aa that does not go from C to F, V or W"
"""Why a record takes no part."""


@dataclass(frozen=True)
class Epitope:
    """Epitopes with the same sequences, which are one test; their texts are joined by semicolons.

    centres  int64: their sequences
    decoy    whether the donors cannot have met them
    """

    name: str
    antigen: str
    organism: str
    mhc: str
    centres: Counts
    decoy: bool


@dataclass(frozen=True)
class Centres:
    """The distinct sequences of records.

    classes   the V and J genes of records that take part
    kind      int64 [centres]: the class
    texts     their amino acids
    epitopes  those of all records
    used      number of records that take part
    left_out  rows of the database, and chains, that do not take part, by the reason
    species, references, rows   of each centre: its species, its references, and its rows of the database, counted
              from 1
    """

    classes: list[Class]
    kind: Counts
    texts: list[str]
    epitopes: list[Epitope]
    used: int
    left_out: dict[str, int]
    species: list[str]
    references: list[str]
    rows: list[str]

    @property
    def letters(self) -> tuple[NDArray[np.uint8], Counts]:
        """The amino acids as ASCII, uint8 [centres, width], padded with zeros to whole words; and their lengths."""
        lengths = np.array([len(text) for text in self.texts], dtype=np.int64)
        width = -(-int(lengths.max(initial=1)) // 8) * 8
        return np.array(self.texts, dtype=f"S{width}").view(np.uint8).reshape(-1, width), lengths


def centres_of(
    database: Records, model: Model, settings: DatabaseSettings, match: Match, decoys: Sequence[str]
) -> Centres:
    """The sequences of the records that take part; InputError if no record does, or if a decoy has no record.

    decoys  organisms, antigens or epitopes
    """
    species = _species(database, model, settings)
    excluded = {_plain(name) for name in settings.exclude_reference}
    _require_references(database, settings)
    genes = _RecordGenes(model, match)
    left_out: Counter[str] = Counter({"row that is not whole": database.unread})
    used: dict[tuple[Class, str], list[Record]] = {}
    classes: set[Class] = set()
    number = 0
    for record in database.records:
        reason = _reason(record, species, genes.loci, excluded)
        if not reason:
            pairs, reason = genes.pairs(record)
            text = record.junction_aa or genes.completed(record)
            reason = reason or _unfit(text)
        if reason:
            left_out[reason] += 1
            continue
        number += 1
        classes.update(pairs)
        for pair in pairs:
            used.setdefault((pair, text), []).append(record)
    reasons = {reason: rows for reason, rows in left_out.most_common() if rows}
    if not used:
        listed = ", ".join(f"{rows:,} {reason}" for reason, rows in reasons.items())
        remedy = _remedy(next(iter(reasons), ""), database)
        raise InputError(f"{database.path or 'the database'}: no record takes part ({listed or 'it is empty'}){remedy}")
    in_order = sorted(classes, key=lambda pair: (pair[0].allele, pair[1].allele))
    kind_of = {pair: kind for kind, pair in enumerate(in_order)}
    keys = sorted(used, key=lambda key: (kind_of[key[0]], len(key[1]), key[1]))
    records = [used[key] for key in keys]
    return Centres(
        in_order,
        np.array([kind_of[pair] for pair, _ in keys], dtype=np.int64),
        [text for _, text in keys],
        _epitopes(records, decoys),
        number,
        reasons,
        [joined(record.species for record in alike) for alike in records],
        [joined(record.reference for record in alike) for alike in records],
        [joined(str(record.row + 1) for record in alike) for alike in records],
    )


def _require_references(database: Records, settings: DatabaseSettings) -> None:
    """Raise InputError if a reference that is to be left out has no record: it may be mistyped."""
    references = {_plain(part) for record in database.records for part in record.reference.split(",")}
    missing = [name for name in settings.exclude_reference if _plain(name) not in references]
    if missing:
        common = Counter(record.reference for record in database.records if record.reference).most_common(3)
        raise InputError(
            f"{option('exclude_reference', few(missing))}: no record is of it; references are written as "
            f"{', '.join(name for name, _ in common) or 'nothing: the database has none'}"
        )


class _RecordGenes:
    """The V and J genes of records under a model."""

    def __init__(self, model: Model, match: Match) -> None:
        # Genes are compared, so an allele that the model lacks is as good as another one of its gene.
        self.model, self.match = replace(model, by_gene=True), match
        self.loci = {locus_of(template.allele) for template in (*model.v, *model.j)} - {""}
        self._genes = cache(self._genes_of)

    def pairs(self, record: Record) -> tuple[list[Class], str]:
        """Each pair of V and J genes that a record may have, and the reason if it has none."""
        v, no_v = ([self.model.alleles("V")], "") if self.match == "none" else self._genes("V", record.v_call)
        j, no_j = self._genes("J", record.j_call) if self.match == "vj" else ([self.model.alleles("J")], "")
        return list(product(v, j)), no_v or no_j

    def _genes_of(self, segment: SegmentType, call: str) -> tuple[list[Alleles], str]:
        """The genes of a call; genes that the model takes together are one."""
        alleles = self.model.resolve(segment, call)
        if not isinstance(alleles, Alleles):
            return [], alleles.summary
        genes: dict[str, Alleles] = {}
        for name in dict.fromkeys(name.partition("*")[0] for name in alleles.allele.split(",")):
            tied = self.model.alleles(segment, self.model.find(segment, name) or ())
            gene = with_all_alleles(self.model, segment, tied)
            if gene.places:
                genes[gene.allele] = gene
        return list(genes.values()), "" if genes else f"{segment} gene that the model cannot make"

    def completed(self, record: Record) -> str:
        """The junction of a CDR3, which ends with the commonest last residue of its J alleles; empty without a CDR3."""
        if not record.cdr3_aa:
            return ""
        alleles = self.model.resolve("J", record.j_call)
        segments = [self.model.j[k].segment for k in alleles.places] if isinstance(alleles, Alleles) else []
        last = Counter(translate([segment[-3:]])[0] for segment in segments)
        return f"{FIRST}{record.cdr3_aa.upper()}{last.most_common(1)[0][0] if last else LAST[0]}"


def _species(database: Records, model: Model, settings: DatabaseSettings) -> str:
    """The species whose records take part; empty for all records of a database without species."""
    if settings.species is not None:
        return settings.species.lower()
    there = Counter(record.species for record in database.records if record.species)
    # The name of a model may begin with a species that only the database knows.
    named = model.species or model.name.rpartition("/")[2].partition("_")[0]
    if named in there or (there and named == model.species):
        return named
    if len(there) < 2:
        return next(iter(there), "")
    raise InputError(
        f"the database has records of {few(list(there))}, and {model.name} does not tell its species; give "
        f"{option('species', 'human')}"
    )


def _remedy(reason: str, database: Records) -> str:
    """What to do if most records are left out for a reason."""
    if reason == _OTHER_SPECIES:
        return f"; {option('species')} says which take part"
    if reason == _WITHOUT_ENDS and database.kind is Named:
        return f"; {option('database_columns', {'cdr3_aa': 'COLUMN'})} says that a column has CDR3s, without these ends"
    if reason in ("no V call", "no J call"):
        without = "none" if reason == "no V call" else "v"
        columns = {f"{reason[3].lower()}_call": "COLUMN"}
        return f"; {option('database_columns', columns)} says where they are, and {option('match', without)} needs none"
    return ""


def _reason(record: Record, species: str, loci: Collection[str], excluded: set[str]) -> str:
    """Why a record takes no part, apart from its genes and sequence; empty if nothing speaks against it."""
    if species and record.species and record.species != species:
        return _OTHER_SPECIES
    if record.locus and record.locus not in loci:
        return f"of another locus than the model's ({', '.join(sorted(loci))})"
    if not record.epitope:
        return "no epitope"
    references = [name for part in record.reference.split(",") if (name := _plain(part))]
    if references and excluded.issuperset(references):
        return "of an excluded reference"
    return "" if record.junction_aa or record.cdr3_aa else "no junction_aa"


def _unfit(text: str) -> str:
    """Why a junction takes no part; empty if it can."""
    if set(text) - set(RESIDUES):
        return "junction_aa with other letters than amino acids"
    if not (text[0] in FIRST and text[-1] in LAST):
        return _WITHOUT_ENDS
    if not SHORTEST <= len(text) <= LONGEST_JUNCTION // 3:
        return f"junction_aa shorter than {SHORTEST} or longer than {LONGEST_JUNCTION // 3}"
    return ""


def _plain(reference: str) -> str:
    """A reference in the form in which references are compared: both `PMID: 1` and `1` are `1`."""
    return "".join(reference.lower().split()).removeprefix("pmid:")


def joined(texts: Iterable[str]) -> str:
    """The distinct texts that are not empty, joined by semicolons."""
    return ";".join(dict.fromkeys(text for text in texts if text))


def _epitopes(records: Sequence[Sequence[Record]], decoys: Sequence[str]) -> list[Epitope]:
    """The epitopes of sequences, by name; epitopes with the same sequences are one.

    records  those of each sequence
    """
    centres_of_name: dict[str, dict[int, None]] = {}
    records_of_name: dict[str, list[Record]] = {}
    for centre, alike in enumerate(records):
        for record in alike:
            centres_of_name.setdefault(record.epitope, {})[centre] = None
            records_of_name.setdefault(record.epitope, []).append(record)
    names_of: dict[tuple[int, ...], list[str]] = {}
    for name, centres in sorted(centres_of_name.items()):
        names_of.setdefault(tuple(centres), []).append(name)
    wanted = {name.lower(): name for name in decoys}
    met: set[str] = set()
    epitopes = []
    for numbers, names in names_of.items():
        of_all = [record for name in names for record in records_of_name[name]]
        labels = [record.targets for record in of_all]
        met |= wanted.keys() & set().union(*labels)
        antigen, organism, mhc = (
            joined(getattr(record, field) for record in of_all) for field in ("antigen", "organism", "mhc")
        )
        decoy = all(wanted.keys() & label for label in labels)
        epitopes.append(Epitope(";".join(names), antigen, organism, mhc, np.array(numbers, dtype=np.int64), decoy))
    if wanted.keys() - met:
        organisms = Counter(record.organism or record.epitope for alike in records for record in alike)
        common = few([name for name, _ in organisms.most_common(20)], 20)
        raise InputError(
            f"{option('decoys', few(sorted(wanted[name] for name in wanted.keys() - met)))}: no record is of it; there "
            f"are records of {common}"
        )
    return epitopes
