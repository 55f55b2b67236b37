#!/usr/bin/env python3
"""Derive the germline tables of this folder from the model files of OLGA 1.3.0.

OLGA (PyPI package `olga`) carries, for ten human and mouse loci, the full germline sequences of V, D and J
genes (`model_params.txt`, under #GeneChoice) and the position of the first base of the codon of Cys 104 in
each V gene and of Phe/Trp 118 in each J gene (`*_gene_CDR3_anchors.csv`).  This script reads these files as
data, runs none of OLGA's code, and writes what of each gene lies in the CDR3 (IMGT positions 105-117):

    V  what follows the codon of Cys 104, up to the gene's 3' end
    D  the whole gene
    J  the gene's 5' end up to, not including, the codon of Phe/Trp 118

Everything that is not such a plain cut is listed below in CORRECTIONS, REFUSALS and NOTES, or follows from a
rule in `cut_v`, `cut_j` and `without_partials`.  No allele disappears silently: each one left out is printed
and written, with the reason, to REFUSED.tsv.
"""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import importlib.util
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

OLGA_VERSION = "1.3.0"
COLUMNS = ("locus", "segment_type", "allele", "functional", "sequence", "source")
REFUSED_COLUMNS = ("table", "locus", "allele", "reason")
REFUSED_NAME = "REFUSED.tsv"
PAPER_NAME = "mouse_trb_paper.tsv"


@dataclass(frozen=True)
class Model:
    """One OLGA model and the table made of it; `origin` is the database whose names it carries."""

    name: str
    table: str
    locus: str
    origin: str


MODELS = (
    Model("human_T_alpha", "human_tra.tsv", "TRA", "IMGT"),
    Model("human_T_beta", "human_trb.tsv", "TRB", "IMGT"),
    Model("human_B_heavy", "human_igh.tsv", "IGH", "IMGT"),
    Model("human_B_kappa", "human_igk.tsv", "IGK", "IMGT"),
    Model("human_B_lambda", "human_igl.tsv", "IGL", "IMGT"),
    Model("mouse_T_alpha", "mouse_tra.tsv", "TRA", "IMGT"),
    Model("mouse_T_beta", "mouse_trb.tsv", "TRB", "IMGT"),
    Model("mouse_B_heavy", "mouse_igh.tsv", "IGH", "OGRDB"),
    Model("mouse_B_kappa", "mouse_igk.tsv", "IGK", "OGRDB"),
    Model("mouse_B_lambda", "mouse_igl.tsv", "IGL", "OGRDB"),
)


def named(prefix: str, numbers: str) -> list[str]:
    """Gene names from blank-separated numbers."""
    return [prefix + number for number in numbers.split()]


# The C57BL/6 mouse TRB set that gives the figures which the paper prints: 20 V, 2 D and 12 J genes.
PAPER_GENES = [
    *named("TRBV", "1 2 3 4 5 12-1 12-2 13-1 13-2 13-3 14 15 16 19 20 23 26 29 30 31"),
    *named("TRBD", "1 2"),
    *named("TRBJ", "1-1 1-2 1-3 1-4 1-5 1-6 2-1 2-2 2-3 2-4 2-5 2-7"),
]
PAPER_J_LENGTHS = [17, 17, 19, 20, 19, 22, 19, 20, 18, 18, 18, 16]
PAPER_V_LENGTHS = {14: 10, 13: 5, 12: 2, 11: 3}
FUNCTIONAL_MOUSE_TRBV = 22


@dataclass(frozen=True)
class Correction:
    """Where codon 104 stands: the sequence ends with `tail`, whose first three bases are that codon."""

    tail: str
    note: str
    reverse: bool = False


CORRECTIONS = {
    # The model carries the reverse complement of the gene, with the anchor of the gene itself.
    ("mouse_T_beta", "TRBV31*01"): Correction(
        "TGTGCCTGGAGTCT", "reverse-complemented in the model, put right here", reverse=True
    ),
    # TAT CTC TGC GCC: the anchor points at CTC.
    ("human_T_beta", "TRBV4-3*02"): Correction(
        "TGCGCCAGCAGCCAAGA", "the model's anchor is one codon too early, put right here"
    ),
    # One base is missing upstream (292 bases; IGHV4-4*02 has 296, one codon more in CDR1): CGG CA. CCC GCC.
    ("human_B_heavy", "IGHV4-4*07"): Correction(
        "TGTGCGAGAGA", "the model's anchor is one base too far, put right here"
    ),
    # ACC TCC ATG TAC TTC TGG GCC AGC AGT: by its neighbours codon 104 is TGG (Cys mutated to Trp), not GCC.
    ("mouse_T_beta", "TRBV10*01"): Correction(
        "TGGGCCAGCAGTGAACAAA", "the model's anchor is one codon too far, put right here"
    ),
    # 27 bases longer than its relatives: the anchor falls short of GCG GTC TAT TAC TGT GCA, which they share.
    ("mouse_B_heavy", "IGHV0-OSZZ*00"): Correction(
        "TGTGCATGA", "the model's anchor is eight codons too early, put right here"
    ),
    # GGC TAT TAC TGT CGC: four bases are missing upstream, so that the gene is out of frame.
    ("human_B_lambda", "IGLV3-2*03"): Correction(
        "TGTCGCTCGGAACAGCACTGCTTCTCATCT",
        "the model's anchor is four bases too far, put right here; frame lost by a deletion before Cys 104",
    ),
}

REFUSALS = {
    # Seen in data, not in the model; README.md tells what was seen.
    ("mouse_T_alpha", "TRAJ24*01"): (
        "truncated: the model's sequence begins inside the gene, observed junctions share the bases before it"
    ),
}

NOTES = {
    ("mouse_T_beta", "TRBV24*01"): "the model's sequence is IMGT's TRBV24*02, whose segment is the same",
    ("mouse_T_alpha", "TRAV7D-3*02"): "perhaps 2 bases short at the 3' end: TRAV7-3*04 goes on with CA",
    ("mouse_T_alpha", "TRAV9-4*01"): "perhaps 2 bases short at the 3' end: TRAV9N-3*01 goes on with CA",
    ("mouse_T_alpha", "TRAV9D-1*02"): "perhaps 1 base short at the 3' end: TRAV9-1*02 goes on with G",
    ("mouse_T_alpha", "TRAV9D-3*02"): "perhaps 2 bases short at the 3' end: TRAV9N-3*01 goes on with CA",
    ("mouse_T_alpha", "TRAV15D-1/DV6D-1*06"): (
        "perhaps 3 bases short at the 3' end: TRAV15-1/DV6-1*01 goes on with TGG"
    ),
    ("mouse_B_kappa", "IGKV0-32WP*00"): "perhaps 2 bases short at the 3' end: IGKV0-TEYP*00 goes on with CT",
    ("mouse_B_kappa", "IGKV0-YZJK*00"): "perhaps 2 bases short at the 3' end: IGKV0-RNNU*00 goes on with CC",
}

# IMGT's functionality codes, with blanks taken off, and what the table writes for them; EVIDENCE says what
# IMGT's brackets mean.
FUNCTIONAL = {"F": "F", "ORF": "ORF", "P": "P", "(F)": "F", "[F]": "F", "(P)": "P", "[P]": "P"}
EVIDENCE = {"(": "known from rearranged sequences only", "[": "not known whether germline or rearranged"}

CODON = 3
CYS = ("TGT", "TGC")
PHE_TRP = ("TTT", "TTC", "TGG")
STOP = ("TAA", "TAG", "TGA")


class DerivationError(Exception):
    """The model files are not what this script was written for; the message says where."""


class NoSegmentError(Exception):
    """An allele has no segment that can be relied on; the message is the reason."""


@dataclass(frozen=True)
class Row:
    """One row of a germline table.  `function` is the model's own code, of which `functional` is made."""

    locus: str
    segment_type: str
    allele: str
    functional: str
    sequence: str
    source: str
    function: str = ""

    @property
    def gene(self) -> str:
        """The gene's name: the allele's, less `*01`."""
        return self.allele.partition("*")[0]

    def noted(self, note: str) -> Row:
        """This row with `note` appended to its source."""
        return replace(self, source=f"{self.source}; {note}")


@dataclass(frozen=True)
class Refusal:
    """One allele that is left out of its table."""

    table: str
    locus: str
    allele: str
    reason: str


def natural_key(allele: str) -> tuple[list[str | int], list[str | int]]:
    """Sort key by which TRBV2 stands before TRBV12-1, and *01 before *02."""
    gene, _, number = allele.partition("*")
    return _parts(gene), _parts(number)


def _parts(text: str) -> list[str | int]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]


def reverse_complement(sequence: str) -> str:
    """The other strand, 5' to 3'."""
    return sequence.translate(str.maketrans("ACGT", "TGCA"))[::-1]


# --- Reading the model files


def read_genes(path: Path) -> dict[str, dict[str, str]]:
    """The full sequences under #GeneChoice, by segment type and allele; blanks in names are taken off."""
    genes: dict[str, dict[str, str]] = {"V": {}, "D": {}, "J": {}}
    kind = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("@") and line != "@Event_list":
            break
        if line.startswith("#"):
            kind = line.split(";")[1][0] if line.startswith("#GeneChoice") else ""
        elif line.startswith("%") and kind:
            allele, sequence, _ = line[1:].split(";")
            _add_gene(genes[kind], allele.strip(), sequence.strip().upper(), path)
    return genes


def _add_gene(genes: dict[str, str], allele: str, sequence: str, path: Path) -> None:
    if allele in genes:
        raise DerivationError(f"{path}: {allele} is listed twice")
    if not sequence or set(sequence) - set("ACGT"):
        raise DerivationError(f"{path}: the sequence of {allele} holds other letters than A, C, G, T")
    genes[allele] = sequence


def read_anchors(path: Path) -> dict[str, tuple[int, str]]:
    """Position of the anchor codon's first base (from 0) and functionality code, by allele; less blanks."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    anchors = {row["gene"].strip(): (int(row["anchor_index"]), row["function"].strip()) for row in rows}
    if len(anchors) != len(rows):
        raise DerivationError(f"{path}: an allele is listed twice")
    return anchors


# --- Cutting


def corrected(model: Model, allele: str, sequence: str, anchor: int) -> tuple[str, int, list[str]]:
    """Sequence and anchor after CORRECTIONS, with the note that says so; unchanged if there is none."""
    correction = CORRECTIONS.get((model.name, allele))
    if correction is None:
        return sequence, anchor, stop_notes(sequence, anchor)
    if correction.reverse:
        sequence = reverse_complement(sequence)
    right = len(sequence) - len(correction.tail)
    if not sequence.endswith(correction.tail) or (right == anchor and not correction.reverse):
        raise DerivationError(f"{model.name}: {allele} is not wrong in the way that CORRECTIONS describes")
    return sequence, right, [correction.note]


def stop_notes(sequence: str, anchor: int) -> list[str]:
    """A note if a stop codon stands upstream of Cys 104 in its frame: no such gene can be functional."""
    codons = (sequence[start : start + CODON] for start in range(anchor % CODON, anchor, CODON))
    return ["stop codon in frame before Cys 104"] if any(codon in STOP for codon in codons) else []


def cut_v(model: Model, allele: str, sequence: str, anchor: int) -> tuple[str, list[str]]:
    """What follows the codon of Cys 104, and notes; NoSegmentError if the sequence does not reach so far."""
    sequence, anchor, notes = corrected(model, allele, sequence, anchor)
    codon, segment = sequence[anchor : anchor + CODON], sequence[anchor + CODON :]
    if len(codon) < CODON:
        raise NoSegmentError("truncated: the model's sequence ends before codon 104 is complete")
    if not segment:
        raise NoSegmentError("truncated: the model's sequence ends with codon 104 and leaves no segment")
    return segment, notes + ([] if codon in CYS else [f"codon 104 reads {codon}"])


def cut_j(model: Model, allele: str, sequence: str, anchor: int) -> tuple[str, list[str]]:
    """What precedes the codon of Phe/Trp 118, and notes."""
    codon = sequence[anchor : anchor + CODON]
    if anchor <= 0 or len(codon) < CODON:
        raise DerivationError(f"{model.name}: the anchor of {allele} lies outside its sequence")
    return sequence[:anchor], [] if codon in PHE_TRP else [f"codon 118 reads {codon}"]


def cut(model: Model, kind: str, allele: str, sequence: str, anchor: tuple[int, str] | None) -> Row:
    """The row of one V or J allele, or NoSegmentError."""
    if (model.name, allele) in REFUSALS:
        raise NoSegmentError(REFUSALS[model.name, allele])
    if anchor is None:
        raise NoSegmentError("the model gives no anchor for it")
    position, function = anchor
    if function not in FUNCTIONAL:
        raise DerivationError(f"{model.name}: {allele} has the unknown functionality code {function!r}")
    segment, notes = (cut_v if kind == "V" else cut_j)(model, allele, sequence, position)
    row = Row(model.locus, kind, allele, FUNCTIONAL[function], segment, source_of(model), function)
    if function[0] in EVIDENCE:
        row = row.noted(f"IMGT {function}: {EVIDENCE[function[0]]}")
    for note in [*notes, *name_notes(allele), *filter(None, [NOTES.get((model.name, allele))])]:
        row = row.noted(note)
    return row


def name_notes(allele: str) -> list[str]:
    """A note if the part behind `*` is not an allele number (01 ...) but names a variant found in data."""
    return [] if re.fullmatch(r"[^*]+\*\d\d", allele) else ["not an IMGT allele name"]


def d_row(model: Model, allele: str, sequence: str) -> Row:
    """The row of one D allele.  The models state no functionality for D genes."""
    row = Row(model.locus, "D", allele, "F", sequence, source_of(model))
    if "/OR15" in allele:
        orphon = "orphon on chromosome 15: cannot take part in IGH recombination, so ORF"
        return replace(row, functional="ORF").noted(orphon)
    return row.noted("functionality not stated in the source, taken as F")


def source_of(model: Model) -> str:
    """The beginning of the source column."""
    return f"{model.origin}, from OLGA {OLGA_VERSION} {model.name}"


def without_partials(rows: Sequence[Row]) -> tuple[list[Row], dict[str, str]]:
    """Leave out alleles of bracketed functionality whose segment is not as long as that of a germline allele.

    A rearranged sequence tells a gene's terminus only if the gene happened not to be chewed back: a shorter
    segment is a chewed one, a longer one reads on into what recombination added.  An allele of plain
    functionality is kept at its own length, and so is a bracketed one whose gene has no plain allele.
    """
    lengths: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        if row.function in ("F", "ORF", "P"):
            lengths[row.gene].add(len(row.sequence))
    kept, reasons = [], {}
    for row in rows:
        known, length = lengths[row.gene], len(row.sequence)
        if row.function[0] not in EVIDENCE or not known or length in known:
            kept.append(row)
            continue
        what = "truncated" if length < min(known) else "reads on beyond the germline end"
        germline = " or ".join(str(n) for n in sorted(known))
        reasons[row.allele] = f"{what}: IMGT {row.function}, segment of {length} nt, germline alleles have {germline}"
    return kept, reasons


def derive_locus(model: Model, models: Path) -> tuple[list[Row], list[Refusal]]:
    """The table of one model, ordered V, D, J and naturally within each, and what was left out."""
    folder = models / model.name
    genes = read_genes(folder / "model_params.txt")
    anchors = {kind: read_anchors(folder / f"{kind}_gene_CDR3_anchors.csv") for kind in "VJ"}
    v_rows, v_reasons = cut_all(model, "V", genes["V"], anchors["V"])
    d_rows = [d_row(model, allele, genes["D"][allele]) for allele in sorted(genes["D"], key=natural_key)]
    j_rows, j_reasons = cut_all(model, "J", genes["J"], anchors["J"])
    table = [*v_rows, *d_rows, *j_rows]
    return marked_all_f(table), refusals_of(model, table, v_reasons | j_reasons)


def cut_all(
    model: Model, kind: str, genes: dict[str, str], anchors: dict[str, tuple[int, str]]
) -> tuple[list[Row], dict[str, str]]:
    """The rows of all V or all J alleles in natural order, and the reasons why others have none."""
    rows: list[Row] = []
    reasons: dict[str, str] = {}
    for allele in sorted(genes.keys() | anchors.keys(), key=natural_key):
        try:
            if allele not in genes:
                raise NoSegmentError("the model lists an anchor but no sequence")
            rows.append(cut(model, kind, allele, genes[allele], anchors.get(allele)))
        except NoSegmentError as refused:
            reasons[allele] = str(refused)
    kept, partial = without_partials(rows)
    return kept, reasons | partial


def marked_all_f(table: list[Row]) -> list[Row]:
    """Say so in the source of V and J rows if the model marks every one of them F, which tells nothing."""
    if any(row.function != "F" for row in table if row.segment_type != "D"):
        return table
    return [row if row.segment_type == "D" else row.noted("the model marks all F") for row in table]


def refusals_of(model: Model, table: Sequence[Row], reasons: dict[str, str]) -> list[Refusal]:
    """The refusals of a table in natural order, telling where a gene is lost with its last allele."""
    genes = {row.gene for row in table}
    lost = {allele: "" if allele.partition("*")[0] in genes else "; the gene is lost" for allele in reasons}
    ordered = sorted(reasons, key=lambda allele: (allele[3] == "J", natural_key(allele)))
    return [Refusal(model.table, model.locus, allele, reasons[allele] + lost[allele]) for allele in ordered]


# --- Checking against the paper's figures


def require(condition: bool, what: str) -> None:
    """An assertion that `python -O` keeps."""
    if not condition:
        raise DerivationError(f"the derived tables do not have the reference figures: {what}")


def check_reference_figures(tables: dict[str, list[Row]]) -> None:
    """The mouse TRB set whose figures the paper prints."""
    paper = {row.gene: row.sequence for row in tables[PAPER_NAME]}
    require(list(paper) == sorted(PAPER_GENES, key=lambda g: ("VDJ".index(g[3]), natural_key(g))), "paper's genes")
    lengths = {gene: len(sequence) for gene, sequence in paper.items()}
    v_lengths = Counter(length for gene, length in lengths.items() if gene[3] == "V")
    require(v_lengths == PAPER_V_LENGTHS, f"V segment lengths {dict(v_lengths)}")
    j_lengths = [lengths[gene] for gene in PAPER_GENES if gene[3] == "J"]
    require(j_lengths == PAPER_J_LENGTHS, f"J segment lengths {j_lengths}")
    require(paper["TRBV1"] == "ACCTGCAGTGCAGA" and paper["TRBV31"] == "GCCTGGAGTCT", "TRBV1, TRBV31")
    require(paper["TRBD1"] == "GGGACAGGGGGC" and paper["TRBD2"] == "GGGACTGGGGGGGC", "TRBD1, TRBD2")
    functional = [row for row in tables["mouse_trb.tsv"] if (row.segment_type, row.functional) == ("V", "F")]
    require(len(functional) == FUNCTIONAL_MOUSE_TRBV, f"{len(functional)} functional mouse TRBV")


def check_all_used(tables: dict[str, list[Row]], refusals: list[Refusal]) -> None:
    """CORRECTIONS, REFUSALS and NOTES name alleles that the models have: a misspelt one would do nothing."""
    names = {model.table: model.name for model in MODELS}
    known = {(name, row.allele) for table, name in names.items() for row in tables[table]}
    known |= {(names[refusal.table], refusal.allele) for refusal in refusals}
    unknown = sorted({*CORRECTIONS, *REFUSALS, *NOTES} - known)
    if unknown:
        raise DerivationError(f"the models have no {', '.join(' '.join(key) for key in unknown)}")


# --- Files


def derive(models: Path) -> tuple[dict[str, list[Row]], list[Refusal]]:
    """All tables by file name, and all refusals."""
    tables: dict[str, list[Row]] = {}
    refusals: list[Refusal] = []
    for model in MODELS:
        tables[model.table], refused = derive_locus(model, models)
        refusals += refused
    tables[PAPER_NAME] = [row for row in tables["mouse_trb.tsv"] if row.gene in PAPER_GENES]
    check_all_used(tables, refusals)
    check_reference_figures(tables)
    return tables, refusals


def as_tsv(columns: Iterable[str], records: Iterable[object]) -> str:
    """Tab-separated text: the header, then the named attributes of each record."""
    columns = list(columns)
    lines = [columns, *([getattr(record, column) for column in columns] for record in records)]
    return "".join("\t".join(line) + "\n" for line in lines)


def texts(tables: dict[str, list[Row]], refusals: list[Refusal]) -> dict[str, str]:
    """The content of every file, by name."""
    files = {name: as_tsv(COLUMNS, rows) for name, rows in tables.items()}
    return files | {REFUSED_NAME: as_tsv(REFUSED_COLUMNS, refusals)}


def counts_table(tables: dict[str, list[Row]]) -> str:
    """The number of alleles by functionality, F / ORF / P, as the Markdown table of README.md."""
    lines = ["| table | V: F / ORF / P | D: F / ORF / P | J: F / ORF / P | rows |", "|---|---|---|---|---|"]
    for name, rows in tables.items():
        counts = Counter((row.segment_type, row.functional) for row in rows)
        cells = [" / ".join(str(counts[kind, status]) for status in ("F", "ORF", "P")) for kind in "VDJ"]
        lines.append(f"| `{name}` | {' | '.join(cells)} | {len(rows)} |")
    return "\n".join(lines)


def find_models(given: Path | None) -> Path:
    """OLGA's folder of models: the one given, or that of the installed package, which is not imported."""
    if given is not None:
        return given
    spec = importlib.util.find_spec("olga")
    if spec is None or not spec.submodule_search_locations:
        raise DerivationError(f"OLGA is not installed: pip install olga=={OLGA_VERSION}, or give --models DIR")
    version = importlib.metadata.version("olga")
    if version != OLGA_VERSION:
        raise DerivationError(
            f"OLGA {version} is installed, these tables are of {OLGA_VERSION}: "
            f"pip install olga=={OLGA_VERSION}, or give --models DIR"
        )
    return Path(spec.submodule_search_locations[0]) / "default_models"


def differing(files: dict[str, str], folder: Path) -> list[str]:
    """The names of the files that are missing from `folder` or differ there."""
    return [
        name
        for name, text in files.items()
        if not (folder / name).is_file() or (folder / name).read_bytes() != text.encode()
    ]


def write(files: dict[str, str], folder: Path) -> None:
    """Write every file into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_bytes(text.encode())


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description="Derive the germline tables of this folder (V, D and J segments as they lie in the CDR3) "
        f"from the model files of OLGA {OLGA_VERSION}, which are read as data. Prints every allele that is "
        "left out, with the reason, and the number of alleles in each table.",
        epilog="Exit status: 0 done, or all files as derived; 1 with --check, if a file differs; 2 if the "
        "model files cannot be found or read, or are not what this script was written for.",
    )
    parser.add_argument(
        "--models",
        type=Path,
        metavar="DIR",
        help="OLGA's folder default_models, with human_T_alpha and the others in it "
        "(default: that of the installed package olga)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        default=Path(__file__).resolve().parent,
        help="the folder to write to, or to check (default: the folder of this script)",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; compare with the files on disk, name those that differ, and exit 1 if any does",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Derive, then write or compare; the exit status."""
    options = parse_arguments(arguments)
    try:
        tables, refusals = derive(find_models(options.models))
        files = texts(tables, refusals)
        if options.check:
            wrong = differing(files, options.out)
            print("\n".join(f"differs: {name}" for name in wrong) or f"{len(files)} files are as derived")
            return 1 if wrong else 0
        write(files, options.out)
    except (DerivationError, OSError, KeyError, ValueError) as error:
        print(f"derive.py: {error}", file=sys.stderr)
        return 2
    for refusal in refusals:
        print(f"left out of {refusal.table}: {refusal.allele}: {refusal.reason}")
    print(counts_table(tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())
