"""Germline tables from published sources: IMGT-gapped FASTA, AIRR GermlineSet JSON, IGoR and OLGA models.

docs/germline_import.md describes the sources, how segments are cut, and why alleles are refused.
"""

from collections.abc import Sequence
from pathlib import Path

from hpcvdj.errors import InputError, option
from hpcvdj.germline_import.anchors import apply_entry
from hpcvdj.germline_import.genes import Gene, Reason, RefusalKind
from hpcvdj.germline_import.sources import AUTO, Source, source_kind, summaries
from hpcvdj.germline_import.table import Imported, assemble
from hpcvdj.recombination.anchors import AnchorEntry, read_anchors

__all__ = ["AUTO", "Imported", "Source", "import_germline", "source_kind", "summaries"]


def import_germline(
    sources: str | Path | Sequence[str | Path],
    *,
    source_format: str = AUTO,
    loci: Sequence[str] = (),
    species: str | None = None,
    anchors: str | Path | None = None,
    source_note: str | None = None,
    species_note: str | None = None,
) -> Imported:
    """The germline table of one or several sources, and the refused alleles, each with its reason.

    sources        files (FASTA or JSON, plain or gzip) and model folders
    source_format  the name of a `Source`; `auto` detects the kind of each source
    loci           keep these loci only (TRB); a single locus is also that of alleles whose names have no locus
    species        keep this species only, if the source names the species (Homo sapiens)
    anchors        an anchors file: positions of codons 104 and 118 that are missing or wrong in the sources
    source_note    text for the column `source` in place of the source's name
    species_note   text to add to that column

    InputError names the source and the remedy.
    """
    paths = [Path(source) for source in ([sources] if isinstance(sources, str | Path) else sources)]
    if not paths:
        raise InputError(f"no source; name one or several of {summaries()}")
    entries = read_anchors(Path(anchors)) if anchors is not None else {}
    genes = [gene for path in paths for gene in source_kind(path, source_format).read(path)]
    by_species = {gene.species.lower(): gene.species for gene in genes if gene.species}
    if len(by_species) > 1 and species is None:
        files, names = ", ".join(map(str, paths)), ", ".join(by_species.values())
        raise InputError(f"{files}: alleles of {names}; choose one species with {option('species')}")
    wanted = [locus.upper() for locus in loci]
    for gene in genes:
        notes = [gene.source if source_note is None else source_note, species_note or ""]
        gene.source = "; ".join(" ".join(note.split()) for note in notes if note)
        _require_in_scope(gene, wanted, species)
        apply_entry(entries.get(gene.allele, AnchorEntry(gene.allele)), gene)
    for allele in entries.keys() - {gene.allele for gene in genes}:
        genes.append(Gene("V", allele, "", "", "", refusal=Reason(RefusalKind.NOT_IN_SOURCES)))
    return assemble(genes)


def _require_in_scope(gene: Gene, loci: Sequence[str], species: str | None) -> None:
    """Refuse an allele of another species or locus; if only one locus is possible, set it."""
    if species is not None and gene.species and gene.species.lower() != species.lower():
        gene.refusal = Reason(RefusalKind.OTHER_SPECIES, gene.species)
    if gene.outside:
        return
    if gene.locus == "TRA" and "TRD" in loci and "TRA" not in loci and "/DV" in gene.allele:
        # TRAV14/DV4 and the like are V genes of both loci.
        gene.locus = "TRD"
    if not gene.locus and len(loci) == 1:
        gene.locus = loci[0]
    if not gene.locus:
        gene.refusal = Reason(RefusalKind.NO_LOCUS)
    elif loci and gene.locus not in loci:
        gene.refusal = Reason(RefusalKind.OTHER_LOCUS, gene.locus)
