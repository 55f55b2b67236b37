"""Germline tables from what databases publish: IMGT-gapped FASTA, AIRR GermlineSet JSON, IGoR and OLGA models.

docs/germline_import.md says what is read, how segments are cut, and why alleles are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from hpcvdj.errors import InputError
from hpcvdj.germline_import.anchors import read_anchors
from hpcvdj.germline_import.genes import Gene, Row
from hpcvdj.germline_import.reading import bytes_of
from hpcvdj.germline_import.table import Imported, Refusal

__all__ = ["FORMATS", "Imported", "Refusal", "Row", "SourceFormat", "format_of", "import_germline"]

SourceFormat = Literal["auto", "fasta", "airr", "model"]
"""Kinds of source: IMGT-gapped FASTA, AIRR GermlineSet JSON, IGoR or OLGA model folder."""

FORMATS = get_args(SourceFormat)


def import_germline(
    sources: str | Path | Sequence[str | Path],
    *,
    name: str = "germline.tsv",
    source_format: SourceFormat = "auto",
    loci: Sequence[str] = (),
    species: str | None = None,
    anchors: str | Path | None = None,
    source_note: str | None = None,
    species_note: str | None = None,
) -> Imported:
    """The germline table of one or several sources, and the alleles that were left out, each with its reason.

    sources        files (FASTA or JSON, plain or gzip) and model folders
    name           what the table is called in messages and in the list of refusals
    source_format  `auto` tells each source's kind by its content
    loci           keep these alone (TRB); also the locus of alleles whose names do not tell one, if it is one
    species        keep this one alone, of sources that name it (Homo sapiens)
    anchors        an anchors file: places of codons 104 and 118 that the sources lack or have wrong
    source_note    stands in the column `source` in place of the source's name; `species_note` behind it

    InputError names the source and the remedy.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "genes.fasta")
    >>> j_genes = ">TRBJ9*01\\nacaattttggcaaaggcacac\\n>TRBJ8*01\\nacgtt\\n"
    >>> _ = path.write_text(">TRBV9*01\\n" + "." * 309 + "tgtgccagc\\n" + j_genes)
    >>> imported = import_germline(path)
    >>> [(row.allele, row.sequence) for row in imported.rows]
    [('TRBV9*01', 'GCCAGC'), ('TRBJ9*01', 'ACAAT')]
    >>> imported.refusals[0].allele, imported.refusals[0].reason[:47]
    ('TRBJ8*01', 'no anchor: the motif F/W-G-X-G is not there in ')
    """
    from hpcvdj.germline_import.table import assemble

    listed = [sources] if isinstance(sources, str | Path) else list(sources)
    if not listed:
        raise InputError("no source; name a FASTA file, a GermlineSet JSON or a model folder")
    given = read_anchors(Path(anchors)) if anchors is not None else {}
    genes: list[Gene] = []
    for path in map(Path, listed):
        genes += _noted(_read(path, source_format, source_note, species), species_note)
    there = dict.fromkeys(gene.species for gene in genes if gene.species)
    if len(there) > 1 and species is None:
        raise InputError(
            f"{', '.join(map(str, listed))}: alleles of {', '.join(there)}; choose one species with --species"
        )
    return assemble(genes, name=name, loci=[locus.upper() for locus in loci], given=given)


def _noted(genes: list[Gene], note: str | None) -> list[Gene]:
    return genes if not note else [replace(gene, source=f"{gene.source}; {' '.join(note.split())}") for gene in genes]


def _read(path: Path, source_format: SourceFormat, source: str | None, species: str | None) -> list[Gene]:
    source = " ".join(source.split()) if source is not None else None
    kind = format_of(path) if source_format == "auto" else source_format
    if kind == "model":
        from hpcvdj.germline_import.models import read_model

        return read_model(path, source)
    if path.is_dir():
        raise InputError(f"{path}: a folder, not a file as --format {kind} reads; name the file in it")
    if kind == "airr":
        from hpcvdj.germline_import.airr_json import read_germline_set

        return read_germline_set(path, source, species)
    from hpcvdj.germline_import.fasta import read_fasta

    return read_fasta(path, source, species)


def format_of(path: Path) -> SourceFormat:
    """The kind of a source, by its content: a folder is a model, `>` begins a FASTA file, `{` or `[` JSON."""
    if path.is_dir():
        return "model"
    head = bytes_of(path).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if head == b">":
        return "fasta"
    if head and head in b"{[":
        return "airr"
    if not head:
        raise InputError(f"{path}: the file is empty; download it again")
    raise InputError(
        f"{path}: neither FASTA (it does not begin with >) nor JSON; name IMGT's FASTA, a GermlineSet JSON "
        "or a model folder, or force the kind with --format"
    )
