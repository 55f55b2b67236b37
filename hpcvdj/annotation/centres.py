"""The records of a database that take part: distinct sequences of V and J genes, and the epitopes of each."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

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
from hpcvdj.repertoires.databases import Record, Records
from hpcvdj.repertoires.genes import with_all_alleles

Class = tuple[Alleles, Alleles]
"""V and J genes."""

SHORTEST = 5
"""Residues of the shortest junction that takes part."""


@dataclass(frozen=True)
class Epitope:
    """Epitopes that have the same sequences, which makes them one test; texts join what the records say.

    centres  int64: their sequences
    decoy    the donors cannot have met them
    """

    name: str
    antigen: str
    organism: str
    mhc: str
    centres: Counts
    decoy: bool


@dataclass(frozen=True)
class Centres:
    """Distinct sequences of records.

    classes   the V and J genes that there are
    kind      int64 [centres]: the class
    texts     their amino acids
    epitopes  those of all records
    used      records that take part
    left_out  rows of the database, and chains, that do not, by the reason
    species, references, rows   of each centre: its species, what names its references, and its rows of the database,
              the first is 1
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
    """The sequences of the records that take part; InputError if none does, or if a decoy has no record.

    decoys  organisms, antigens or epitopes
    """
    species = _species(database, model, settings)
    excluded = {_plain(name) for name in settings.exclude_reference}
    _require_references(database, settings)
    place = _Placing(model, match)
    left_out: Counter[str] = Counter({"row that is not whole": database.unread})
    used: dict[tuple[int, str], list[Record]] = {}
    numbers = 0
    for record in database.records:
        reason, text = _reason(record, species, place, excluded), ""
        kinds: list[int] = []
        if not reason:
            kinds, reason = place.classes(record)
            text = record.junction_aa or place.completed(record)
            reason = reason or _unfit(text)
        if reason:
            left_out[reason] += 1
            continue
        numbers += 1
        for kind in kinds:
            used.setdefault((kind, text), []).append(record)
    if not used:
        said = ", ".join(f"{number:,} {reason}" for reason, number in left_out.most_common() if number)
        raise InputError(f"{database.path or 'the database'}: no record takes part ({said or 'it is empty'})")
    names = sorted(range(len(place.found)), key=lambda k: [own.allele for own in place.found[k]])
    order = {kind: number for number, kind in enumerate(names)}
    keys = sorted(used, key=lambda key: (order[key[0]], len(key[1]), key[1]))
    epitopes = _epitopes([used[key] for key in keys], decoys)
    return Centres(
        [place.found[kind] for kind in names],
        np.array([order[kind] for kind, _ in keys], dtype=np.int64),
        [text for _, text in keys],
        epitopes,
        numbers,
        {reason: number for reason, number in left_out.most_common() if number},
        [_joined(record.species for record in used[key]) for key in keys],
        [_joined(record.reference for record in used[key]) for key in keys],
        [_joined(str(record.row + 1) for record in used[key]) for key in keys],
    )  # fmt: skip


def _require_references(database: Records, settings: DatabaseSettings) -> None:
    """Raise InputError if no record is of a reference that is to be left out: it may be mistyped."""
    known = {_plain(part) for record in database.records for part in record.reference.split(",")}
    missing = [name for name in settings.exclude_reference if _plain(name) not in known]
    if missing:
        common = Counter(record.reference for record in database.records if record.reference).most_common(3)
        raise InputError(
            f"{option('exclude_reference', few(missing))}: no record is of it; references are written as "
            f"{', '.join(name for name, _ in common) or 'nothing: the database has none'}"
        )


class _Placing:
    """The classes of records under a model, each met once."""

    def __init__(self, model: Model, match: Match) -> None:
        self.model, self.match = model, match
        self.found: list[Class] = []
        self.loci = {locus_of(template.allele) for template in (*model.v, *model.j)} - {""}
        self._number: dict[tuple[str, str], int] = {}
        self._genes = cache(self._genes_of)

    def classes(self, record: Record) -> tuple[list[int], str]:
        """The class of each V and J gene that a record may have, and why it has none."""
        v, j = (
            self._genes(segment, call) if needed else ([self.model.alleles(segment)], "")
            for segment, call, needed in self._sides(record)
        )  # fmt: skip
        return [self._class(one, other) for one in v[0] for other in j[0]], v[1] or j[1]

    def _sides(self, record: Record) -> tuple[tuple[SegmentType, str, bool], tuple[SegmentType, str, bool]]:
        return ("V", record.v_call, self.match != "none"), ("J", record.j_call, self.match == "vj")

    def _class(self, v: Alleles, j: Alleles) -> int:
        number = self._number.setdefault((v.allele, j.allele), len(self.found))
        if number == len(self.found):
            self.found.append((v, j))
        return number

    def _genes_of(self, segment: SegmentType, call: str) -> tuple[list[Alleles], str]:
        """The genes of a call, those that are taken together as one."""
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
        """A junction of which only the CDR3 is known: its last residue is that of J, mostly F."""
        if not record.cdr3_aa:
            return ""
        alleles = self.model.resolve("J", record.j_call)
        segments = [self.model.j[k].segment for k in alleles.places] if isinstance(alleles, Alleles) else []
        last = Counter(translate([segment[-3:]])[0] for segment in segments)
        return f"{FIRST}{record.cdr3_aa.upper()}{last.most_common(1)[0][0] if last else LAST[0]}"


def _species(database: Records, model: Model, settings: DatabaseSettings) -> str:
    """The species whose records take part; empty for all of a database that does not tell."""
    if settings.species is not None:
        return settings.species.lower()
    there = Counter(record.species for record in database.records if record.species)
    # A name may begin with a species that only the database knows.
    named = model.species or model.name.rpartition("/")[2].partition("_")[0]
    if named in there or (there and named == model.species):
        return named
    if len(there) < 2:
        return next(iter(there), "")
    raise InputError(
        f"the database has records of {few(list(there))}, and {model.name} does not tell its species; give "
        f"{option('species', 'human')}"
    )


def _reason(record: Record, species: str, place: _Placing, excluded: set[str]) -> str:
    """Why a record takes no part, but for its genes and sequence; empty if nothing speaks against it."""
    if species and record.species and record.species != species:
        return "of another species"
    if record.locus and record.locus not in place.loci:
        return f"of another locus than the model's ({', '.join(sorted(place.loci))})"
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
        return "junction_aa that does not go from C to F, V or W"
    if not SHORTEST <= len(text) <= LONGEST_JUNCTION // 3:
        return f"junction_aa shorter than {SHORTEST} or longer than {LONGEST_JUNCTION // 3}"
    return ""


def _plain(reference: str) -> str:
    """A reference as references are compared: `PMID: 1` is `pmid:1`, and `1`."""
    return "".join(reference.lower().split()).removeprefix("pmid:")


def _joined(texts: Iterable[str]) -> str:
    return ";".join(dict.fromkeys(text for text in texts if text))


def _epitopes(records: Sequence[Sequence[Record]], decoys: Sequence[str]) -> list[Epitope]:
    """The epitopes of sequences, by name; those that have the same sequences together."""
    of_name: dict[str, dict[int, None]] = {}
    said: dict[str, list[Record]] = {}
    for centre, own in enumerate(records):
        for record in own:
            of_name.setdefault(record.epitope, {})[centre] = None
            said.setdefault(record.epitope, []).append(record)
    alike: dict[tuple[int, ...], list[str]] = {}
    for name, centres in of_name.items():
        alike.setdefault(tuple(centres), []).append(name)
    given = {name.lower(): name for name in decoys}
    wanted = set(given)
    met: set[str] = set()
    epitopes = []
    for own_centres, names in sorted(alike.items(), key=lambda item: sorted(item[1])):
        of_all = [record for name in sorted(names) for record in said[name]]
        each = [{record.epitope.lower(), record.antigen.lower(), record.organism.lower()} for record in of_all]
        met |= wanted & set().union(*each)
        antigen, organism, mhc = (
            _joined(getattr(record, field) for record in of_all) for field in ("antigen", "organism", "mhc")
        )
        decoy = bool(wanted) and all(wanted & own for own in each)
        epitopes.append(
            Epitope(";".join(sorted(names)), antigen, organism, mhc, np.array(own_centres, dtype=np.int64), decoy)
        )
    if wanted - met:
        organisms = Counter(record.organism for own in records for record in own if record.organism)
        common = few([name for name, _ in organisms.most_common(20)], 20)
        raise InputError(
            f"{option('decoys', few(sorted(given[name] for name in wanted - met)))}: no record is of it; there are "
            f"records of {common}"
        )
    return epitopes
