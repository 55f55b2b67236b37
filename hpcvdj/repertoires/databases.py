"""Databases of receptors of known specificity, as their makers publish them.

A row has one chain of a receptor, or two; a chain becomes a record.  `hpcvdj annotate` decides which records it uses,
and says why others are left out.
"""

import csv
import hashlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from hpcvdj.errors import InputError, choices, few, option
from hpcvdj.recombination.calls import locus_of
from hpcvdj.repertoires.formats.format import otherwise_separated
from hpcvdj.storage.inputs import DAMAGE, LimitedStream, require_regular, unpacked

MOST_BYTES = 4 << 30
"""The largest database, in bytes once it is unpacked."""

REFERENCE = "reference"

_SPECIES = {
    "human": ("homosapiens", "human", "9606", "homosapiens(human)"),
    "mouse": ("musmusculus", "mouse", "10090", "musmusculus(mouse)"),
}
"""The names of species in databases, in lower case without blanks."""

_LOCI = {"alpha": "TRA", "beta": "TRB", "gamma": "TRG", "delta": "TRD", "heavy": "IGH", "kappa": "IGK", "lambda": "IGL"}

_MISSING = ("", "NA", "nan", "None")


class Record(NamedTuple):
    """A chain of a receptor whose epitope is known.  Texts are empty if the database does not have them.

    row          the data row of the database, from 0
    locus        such as TRB
    species      `human`, `mouse`, or the database's text
    junction_aa  with Cys 104 and Phe/Trp 118; empty if only `cdr3_aa`, without them, is known
    organism     the source of the antigen
    receptor_id  the receptors that have the chain, as the database numbers them
    """

    row: int
    locus: str
    species: str
    v_call: str
    j_call: str
    junction_aa: str
    cdr3_aa: str
    epitope: str
    antigen: str
    organism: str
    mhc: str
    reference: str
    receptor_id: tuple[str, ...]

    @property
    def targets(self) -> set[str]:
        """What the receptor binds, as decoys are named: the epitope, the antigen, its organism, in lower case."""
        return {self.epitope.lower(), self.antigen.lower(), self.organism.lower()}


FIELDS = Record._fields[1:]
"""The fields of a chain, which users give as texts.  Both chains of a receptor have the same `receptor_id`."""

Layout = Mapping[str, tuple[str, ...]]
"""The columns of each field of a chain.  If there are several, a row has its value in the first that is not empty."""


class Database:
    """A kind of table that a maker publishes.

    name       for messages and facts
    summary    for the documentation
    signature  columns that every table of this kind has
    layouts    the columns of each chain in a row
    loci       the locus of each chain, if no column has it
    open       whether sequences without the ends of a junction are CDR3s
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    signature: ClassVar[frozenset[str]]
    layouts: ClassVar[tuple[Layout, ...]]
    loci: ClassVar[tuple[str, ...]] = ("", "")
    open: ClassVar[bool] = False

    @staticmethod
    def receptors(text: str) -> tuple[str, ...]:
        """The receptors that a text names."""
        return (text,) if text else ()


def _complexes(text: str) -> tuple[str, ...]:
    """The complexes of VDJdb, such as `12,99` of a chain in two; 0, or 0.0 by pandas, if only one chain is known."""
    numbers = (number.strip().removesuffix(".0") for number in re.split("[,;]", text))
    return tuple(dict.fromkeys(number for number in numbers if number not in ("", "0")))


_VDJDB = {"species": ("species",), "epitope": ("antigen.epitope",), "antigen": ("antigen.gene",),
          "organism": ("antigen.species",), "mhc": ("mhc.a",), REFERENCE: ("reference.id",)}  # fmt: skip


class VdjdbSlim(Database):
    name = "vdjdb_slim"
    summary = "VDJdb, vdjdb.slim.txt"
    signature = frozenset({"gene", "cdr3", "v.segm", "antigen.epitope"})
    layouts = (
        {**_VDJDB, "locus": ("gene",), "v_call": ("v.segm",), "j_call": ("j.segm",), "junction_aa": ("cdr3",),
         "receptor_id": ("complex.id",)},
    )  # fmt: skip
    receptors = staticmethod(_complexes)


class VdjdbFull(Database):
    name = "vdjdb_full"
    summary = "VDJdb, vdjdb_full.txt or a chunk"
    signature = frozenset({"cdr3.alpha", "cdr3.beta", "antigen.epitope"})
    layouts = tuple(
        {**_VDJDB, "v_call": (f"v.{chain}",), "j_call": (f"j.{chain}",), "junction_aa": (f"cdr3.{chain}",)}
        for chain in ("alpha", "beta")
    )
    loci = ("TRA", "TRB")


class VdjdbSearch(Database):
    name = "vdjdb_search"
    summary = "VDJdb, the export of a search"
    signature = frozenset({"Gene", "CDR3", "V", "J", "Epitope", "Epitope species"})
    layouts = (
        {"locus": ("Gene",), "species": ("Species",), "v_call": ("V",), "j_call": ("J",), "junction_aa": ("CDR3",),
         "epitope": ("Epitope",), "antigen": ("Epitope gene",), "organism": ("Epitope species",), "mhc": ("MHC A",),
         REFERENCE: ("Reference",), "receptor_id": ("complex.id",)},
    )  # fmt: skip
    receptors = staticmethod(_complexes)


class McPas(Database):
    """Both chains in a row.  The epitope is the peptide."""

    name = "mcpas"
    summary = "McPAS-TCR, McPAS-TCR.csv"
    signature = frozenset({"CDR3.alpha.aa", "CDR3.beta.aa", "Epitope.peptide"})
    layouts = tuple(
        {"species": ("Species",), "v_call": (f"TR{letter}V",), "j_call": (f"TR{letter}J",),
         "junction_aa": (f"CDR3.{chain}.aa",), "epitope": ("Epitope.peptide",), "antigen": ("Antigen.protein",),
         "organism": ("Pathology",), "mhc": ("MHC",), REFERENCE: ("PubMed.ID",)}
        for letter, chain in (("A", "alpha"), ("B", "beta"))
    )  # fmt: skip
    loci = ("TRA", "TRB")


class Iedb(Database):
    """Both chains in a row.  The header has two lines, or one in older exports.  Many CDR3s lack the ends."""

    name = "iedb"
    summary = "IEDB, tcr_full_v3.csv, bcr_full_v3.csv, or the export of receptors"
    signature = frozenset({"Chain 1 Type", "Chain 1 CDR3 Curated", "Chain 2 CDR3 Curated"})
    layouts = tuple(
        {"locus": (f"{chain} Type",), "species": (f"{chain} Organism IRI", f"{chain} Species"),
         "v_call": tuple(name for how in ("Calculated", "Curated")
                         for name in (f"{chain} {how} V Gene", f"{how} {chain} V Gene")),
         "j_call": tuple(name for how in ("Calculated", "Curated")
                         for name in (f"{chain} {how} J Gene", f"{how} {chain} J Gene")),
         "junction_aa": (f"{chain} CDR3 Calculated", f"{chain} CDR3 Curated"),
         "epitope": ("Epitope Name", "Description"), "antigen": ("Epitope Source Molecule", "Antigen"),
         "organism": ("Epitope Source Organism", "Organism"), "mhc": ("Assay MHC Allele Names", "MHC Allele Names"),
         REFERENCE: ("Reference IEDB IRI", "Reference IRI", "Reference ID", "Receptor Reference Name",
                     "Reference Name")}
        for chain in ("Chain 1", "Chain 2")
    )  # fmt: skip
    open = True


class Named(Database):
    name = "columns"
    summary = "any table with the columns v_call, j_call, junction_aa and epitope"
    signature = frozenset({"epitope", "junction_aa"})
    layouts = ({field: (field,) for field in FIELDS},)


@dataclass(frozen=True)
class Records:
    """The records of a database.

    path      its file; None for a table in memory
    sha256    digest of the file's bytes, or of the rows of a table in memory
    kind      its `Database`
    layouts   for each chain of a row, the indices of the columns of each field
    columns   number of columns in the header
    table     data rows
    """

    path: Path | None
    sha256: str
    kind: type[Database]
    layouts: list[dict[str, list[int]]]
    columns: int
    table: Sequence[Sequence[str]]

    @cached_property
    def records(self) -> list[Record]:
        """The chains of complete rows that have a sequence, else the first; a record for each peptide of each."""
        numbers = [number for number, row in enumerate(self.table) if len(row) == self.columns]
        rows = [self.table[number] for number in numbers]
        chains = [
            _chain(numbers, rows, layout, locus, self.kind)
            for layout, locus in zip(self.layouts, self.kind.loci, strict=False)
        ]
        return [
            record._replace(epitope=epitope)
            for of_row in zip(*chains, strict=True)
            for record in [chain for chain in of_row if chain.junction_aa or chain.cdr3_aa] or of_row[:1]
            for epitope in peptides(record.epitope)
        ]

    @property
    def unread(self) -> int:
        """Rows that are not complete."""
        return sum(len(row) != self.columns for row in self.table)

    @property
    def recorded(self) -> dict[str, Any]:
        """The database in facts, as JSON values."""
        return {"path": str(self.path) if self.path else None, "sha256": self.sha256, "kind": self.kind.name,
                "rows": len(self.table)}  # fmt: skip


def read_database(path: Path, columns: Mapping[str, str] | None = None) -> Records:
    """The records of a file: text with tabs or commas, plain, gzip or zstd.

    columns  {field of `FIELDS`: column}, for a table that is no known database, or in place of what is known

    InputError for a file that cannot be read, or that lacks columns.
    """
    require_regular(path, "database", "give the file that its makers publish")
    try:
        with unpacked(path) as stream:
            data = LimitedStream(stream, MOST_BYTES).readall() or b""
    except DAMAGE as error:
        raise InputError(f"{path}: not a readable database ({error}); download it again") from None
    if not data.strip():
        raise InputError(f"{path}: is empty; give the file that its makers publish")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{path}: is in UTF-16, as spreadsheets export it; save it in UTF-8")
    if data.startswith(b"PK"):
        raise InputError(f"{path}: a zip archive; unpack it, and give the table in it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # McPAS-TCR writes names of diseases in Latin-1.
        text = data.decode("latin-1")
    first = text.partition("\n")[0]
    tabs = "\t" in first
    # VDJdb has JSON texts between tabs: their quotes are part of the text.  R also quotes the header.
    is_quoted = not tabs or first.startswith('"')
    lines = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if tabs else ",",
                       quoting=csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE)  # fmt: skip
    try:
        header = [name.strip() for name in next(lines, [])]
        if header.count("Chain 1") > 1:
            header = [" ".join(names).strip() for names in zip(header, next(lines, []), strict=False)]
        # The garbage collector tracks lists, but no tuples of texts.
        rows = [tuple(row) for row in lines if row]
    except csv.Error as error:
        raise InputError(f"{path}: line {lines.line_num}: not a readable table ({error}); download it again") from None
    return _records(path, hashlib.sha256(data).hexdigest(), header, rows, columns)


def database_of(table: Any, columns: Mapping[str, str] | None = None) -> Records:
    """The records of a table in memory, as of `read_database`."""
    from hpcvdj.repertoires.readers import as_arrow

    try:
        arrow = as_arrow(table)
    except InputError:
        raise InputError(
            f"database: is a {type(table).__name__}; give the path of a file, or a pandas, polars or pyarrow table"
        ) from None
    names = list(map(str, arrow.column_names))
    texts = [["" if value is None else str(value) for value in column.to_pylist()] for column in arrow.columns]
    rows = list(zip(*texts, strict=True)) if texts else []
    digest = hashlib.sha256(repr((names, rows)).encode()).hexdigest()
    return _records(None, digest, names, rows, columns)


def _records(
    path: Path | None, digest: str, header: Sequence[str], rows: Sequence[Sequence[str]],
    columns: Mapping[str, str] | None,
) -> Records:  # fmt: skip
    source = str(path) if path is not None else "the database"
    kind, index = _kind(source, header, columns), {name: k for k, name in enumerate(header)}
    layouts = kind.layouts
    if columns is not None and kind is Named:
        layout: dict[str, tuple[str, ...]] = {field: (columns.get(field, field),) for field in FIELDS}
        if layout["cdr3_aa"] == layout["junction_aa"]:
            # A column that is named for one of them does not have the other, whatever it is called.
            layout["cdr3_aa" if "junction_aa" in columns else "junction_aa"] = ()
        layouts = (layout,)
    elif columns:
        if of_chains := [field for field in columns if len({layout.get(field) for layout in layouts}) > 1]:
            both = option("database_columns", {"epitope": "COLUMN", "junction_aa": "COLUMN"})
            raise InputError(
                f"{source}: is {kind.summary}, in which each chain has its own column for {few(of_chains)}; "
                f"{both} reads it as a table of one chain"
            )
        named, replaced = set(columns.values()), {field: (name,) for field, name in columns.items()}
        layouts = tuple(
            {field: tuple(name for name in names if name not in named) for field, names in layout.items()} | replaced
            for layout in layouts
        )
    used = {name for layout in layouts for names in layout.values() for name in names}
    if twice := [name for name in index if name in used and header.count(name) > 1]:
        raise InputError(f"{source}: duplicate column {few(twice)}; rename those that are not to be read")
    indices = [
        {field: [index[name] for name in names if name in index] for field, names in layout.items()}
        for layout in layouts
    ]
    return Records(path, digest, kind, indices, len(header), rows)


def _kind(source: str, header: Sequence[str], columns: Mapping[str, str] | None) -> type[Database]:
    """The database with such a header; `Named` if users name the columns.  Messages begin with `source`."""
    kinds = choices(Database).values()
    if separated := otherwise_separated(header):
        raise InputError(f"{source}: {separated}")
    if columns is not None:
        unknown = [name for name in columns if name not in FIELDS]
        lacking = [name for name in columns.values() if name not in header]
        if unknown or lacking:
            what = f"no field {few(unknown)}; there are {', '.join(FIELDS)}"
            raise InputError(
                f"{source}: {what if unknown else f'no column {few(lacking)}; there are {few(header, 40)}'} "
                f"({option('database_columns')})"
            )
        has = {*header, *columns}
        if "epitope" in has and has & {"junction_aa", "cdr3_aa"}:
            return Named
    kind = next((kind for kind in kinds if kind.signature <= set(header)), None)
    if kind is None and {"epitope", "cdr3_aa"} <= set(header):
        return Named
    if kind is None:
        like = max(kinds, key=lambda kind: len(kind.signature & set(header)) / len(kind.signature))
        lacking = sorted(like.signature - set(header))
        if len(lacking) < len(like.signature):
            what = f"no column {few(lacking)}, as {like.summary} has; download it again"
        else:
            what = f"none of the databases that hpcvdj knows ({'; '.join(kind.summary for kind in kinds)})"
        example = option("database_columns", "junction_aa=cdr3,v_call=v,j_call=j,epitope=peptide")
        names = few([name[:40] for name in header], 40)
        raise InputError(f"{source}: {what}; of another one, name the columns, as in {example}; there are {names}")
    return kind


def _chain(
    numbers: Sequence[int], rows: Sequence[Sequence[str]], layout: Mapping[str, Sequence[int]], locus: str,
    kind: type[Database],
) -> Iterator[Record]:  # fmt: skip
    """The record of one chain of each row, with or without a sequence.

    locus  of the chain, if no column has it
    """
    # Texts repeat often.
    line, species_of, locus_by = cache(_line), cache(_species), cache(_locus)
    texts = dict.fromkeys(FIELDS, [""] * len(rows))
    for field, columns in layout.items():
        for k in reversed(columns):
            texts[field] = [line(row[k]) or other for row, other in zip(rows, texts[field], strict=True)]
    junctions = [text.upper() for text in texts["junction_aa"]]
    if kind.open:
        # Sequences without the ends of a junction are CDR3s.
        has_ends = [text.startswith("C") and text.endswith(("F", "W")) for text in junctions]
        cdr3s = zip(has_ends, junctions, texts["cdr3_aa"], strict=True)
        texts["cdr3_aa"] = [cdr3 if ends or not junction else junction for ends, junction, cdr3 in cdr3s]
        junctions = [junction if ends else "" for ends, junction in zip(has_ends, junctions, strict=True)]
    texts["junction_aa"] = junctions
    texts["locus"] = (
        [locus] * len(rows) if locus else list(map(locus_by, texts["locus"], texts["v_call"], texts["j_call"]))
    )
    texts["species"] = list(map(species_of, texts["species"]))
    receptors = list(map(cache(kind.receptors), texts["receptor_id"]))
    # `receptor_id` is the last field.
    return map(Record._make, zip(numbers, *(texts[field] for field in FIELDS[:-1]), receptors, strict=True))


_SEVERAL = re.compile(r"[AC-IK-NP-TVWY]{5,}([ ;,/]+[AC-IK-NP-TVWY]{5,})+")


@cache
def peptides(epitope: str) -> tuple[str, ...]:
    """The peptides of a cell that has several; another epitope is one, whatever its name."""
    return tuple(dict.fromkeys(re.findall("[A-Z]+", epitope))) if _SEVERAL.fullmatch(epitope) else (epitope,)


def _line(text: str) -> str:
    """A text as one line without control characters, which would break a table; empty if it stands for nothing."""
    line = (
        text.strip() if text.isprintable() else " ".join("".join(c if c.isprintable() else " " for c in text).split())
    )
    return "" if line in _MISSING else line


def _locus(text: str, v_call: str, j_call: str) -> str:
    """The locus of a record, by its genes, else by the database's text."""
    named = next((locus for word, locus in _LOCI.items() if word in text.lower()), text.upper())
    return locus_of(v_call) or locus_of(j_call) or named


def _species(text: str) -> str:
    """`human`, `mouse`, or the database's text in lower case without blanks."""
    plain = "".join(text.lower().split()).rpartition("_")[2]
    return next((species for species, words in _SPECIES.items() if plain in words), plain)
