#!/usr/bin/env python3
"""Derive the germline tables of this folder from the model files of OLGA 1.3.0.

For ten human and mouse loci, OLGA (PyPI package `olga`) has the full germline sequences of V, D and J genes
(`model_params.txt`, under #GeneChoice), and the position of the first base of the codon of Cys 104 in each V gene
and of Phe/Trp 118 in each J gene (`*_gene_CDR3_anchors.csv`).  This script reads these files as data, without
running OLGA's code, and imports them as `hpcvdj germline import` does.

The files in `anchors/` correct or refuse what is known to be wrong with a model.  No allele disappears silently:
each one that is left out is printed, and written to REFUSED.tsv, with the reason.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hpcvdj.errors import InputError
from hpcvdj.germline_import import Imported, import_germline
from hpcvdj.germline_import.genes import RefusalKind, natural_key

FOLDER = Path(__file__).resolve().parent
OLGA_VERSION = "1.3.0"
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

UNEXPECTED = (
    RefusalKind.ANCHOR_MISMATCH,
    RefusalKind.ANCHOR_OUTSIDE,
    RefusalKind.NOT_IN_SOURCES,
    RefusalKind.UNKNOWN_FUNCTION,
)
"""Reasons that do not occur with the models for which the anchors files were written."""


class DerivationError(Exception):
    """The model files are not what this script was written for; the message says where."""


def anchors_file(model: Model) -> Path | None:
    """What is known of the model's faults: anchors, refusals and notes."""
    path = FOLDER / "anchors" / Path(model.table).with_suffix(".csv").name
    return path if path.is_file() else None


def derive_locus(model: Model, models: Path) -> Imported:
    """The table of one model, as `hpcvdj germline import` makes it, and what was left out."""
    imported = import_germline(
        models / model.name,
        source_format="model",
        loci=[model.locus],
        anchors=anchors_file(model),
        source_note=f"{model.origin}, from OLGA {OLGA_VERSION} {model.name}",
    )
    for gene in imported.refusals:
        if gene.refusal and gene.refusal.kind in UNEXPECTED:
            raise DerivationError(f"{model.name}: {gene.allele}: {gene.reason}")
    return imported


# --- Checking against the paper's figures


def require(condition: bool, what: str) -> None:
    """An assertion that `python -O` keeps."""
    if not condition:
        raise DerivationError(f"the derived tables do not have the reference figures: {what}")


def check_reference_figures(tables: dict[str, Imported]) -> None:
    """The mouse TRB set whose figures the paper prints."""
    paper = {row.gene: row.sequence for row in tables[PAPER_NAME].rows}
    require(list(paper) == sorted(PAPER_GENES, key=lambda g: ("VDJ".index(g[3]), natural_key(g))), "paper's genes")
    lengths = {gene: len(sequence) for gene, sequence in paper.items()}
    v_lengths = Counter(length for gene, length in lengths.items() if gene[3] == "V")
    require(v_lengths == PAPER_V_LENGTHS, f"V segment lengths {dict(v_lengths)}")
    j_lengths = [lengths[gene] for gene in PAPER_GENES if gene[3] == "J"]
    require(j_lengths == PAPER_J_LENGTHS, f"J segment lengths {j_lengths}")
    require(paper["TRBV1"] == "ACCTGCAGTGCAGA" and paper["TRBV31"] == "GCCTGGAGTCT", "TRBV1, TRBV31")
    require(paper["TRBD1"] == "GGGACAGGGGGC" and paper["TRBD2"] == "GGGACTGGGGGGGC", "TRBD1, TRBD2")
    mouse = tables["mouse_trb.tsv"].rows
    functional = [row for row in mouse if (row.segment_type, row.functional) == ("V", "F")]
    require(len(functional) == FUNCTIONAL_MOUSE_TRBV, f"{len(functional)} functional mouse TRBV")


# --- Files


def derive(models: Path) -> dict[str, Imported]:
    """All tables by file name, each with its refusals."""
    tables = {model.table: derive_locus(model, models) for model in MODELS}
    paper = tuple(row for row in tables["mouse_trb.tsv"].rows if row.gene in PAPER_GENES)
    tables[PAPER_NAME] = Imported(paper, ())
    check_reference_figures(tables)
    return tables


def texts(tables: dict[str, Imported]) -> dict[str, str]:
    """The content of every file, by name."""
    files = {name: imported.texts(name) for name, imported in tables.items()}
    header, _, _ = files[PAPER_NAME][1].partition("\n")
    refused = "".join(listed.removeprefix(f"{header}\n") for _, listed in files.values())
    return {name: table for name, (table, _) in files.items()} | {REFUSED_NAME: f"{header}\n{refused}"}


def counts_table(tables: dict[str, Imported]) -> str:
    """The number of alleles by functionality, F / ORF / P, as the Markdown table of README.md."""
    lines = ["| table | V: F / ORF / P | D: F / ORF / P | J: F / ORF / P | rows |", "|---|---|---|---|---|"]
    for name, imported in tables.items():
        counts = Counter(f"{row.segment_type} {row.functional}" for row in imported.rows)
        cells = [" / ".join(str(counts[f"{kind} {status}"]) for status in ("F", "ORF", "P")) for kind in "VDJ"]
        lines.append(f"| `{name}` | {' | '.join(cells)} | {len(imported.rows)} |")
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
        description="Derive the germline tables of this folder (the parts of V, D and J genes in the CDR3) "
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
        default=FOLDER,
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
        tables = derive(find_models(options.models))
        files = texts(tables)
        if options.check:
            wrong = differing(files, options.out)
            print("\n".join(f"differs: {name}" for name in wrong) or f"{len(files)} files are as derived")
            return 1 if wrong else 0
        write(files, options.out)
    except (DerivationError, InputError, OSError, KeyError) as error:
        print(f"derive.py: {error}", file=sys.stderr)
        return 2
    for name, imported in tables.items():
        for gene in imported.refusals:
            print(f"left out of {name}: {gene.allele}: {gene.reason}")
    print(counts_table(tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())
