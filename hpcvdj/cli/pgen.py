"""`hpcvdj pgen`."""

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hpcvdj.cli import common, options
from hpcvdj.cli.computing import Started, compute_each, planned
from hpcvdj.cli.helping import MORE
from hpcvdj.recombination.repertoire import JunctionField
from hpcvdj.runs.ranks import log_if_serial

if TYPE_CHECKING:
    from hpcvdj.counting.config import PgenConfig
    from hpcvdj.recombination.models import Model
    from hpcvdj.repertoires.inputs import Inputs
    from hpcvdj.repertoires.reading import Reading

log = logging.getLogger(__name__)


def command(
    junctions: options.Tables,
    model: options.ModelName,
    output: options.Output,
    together: options.Together = False,
    table_format: options.TableFormat = None,
    columns: options.Columns = None,
    sequence: Annotated[
        Literal["nt", "aa", "both"] | None,
        typer.Option(
            "--sequence",
            help="Probability of the nucleotide sequence, of its amino acids, or both.",
            show_default="both; aa if junction_aa is read",
        ),
    ] = None,
    sequence_field: Annotated[
        JunctionField | None,
        typer.Option(
            "--sequence-field",
            help="AIRR field to read: nucleotides; or amino acids with X, B, J, Z and the symbols of --alphabet, in "
            "cdr3_aa without the conserved C and F/W.",
            show_default="the first of them that the table has",
        ),
    ] = None,
    alphabet: Annotated[
        Path | None,
        typer.Option(
            "--alphabet",
            metavar="FILE",
            help="Symbols for several amino acids or codons in junction_aa, beside X, B, J and Z: lines such as "
            "'x: D, E, AAA', as OLGA reads them.",
            show_default=False,
            rich_help_panel=MORE,
        ),
    ] = None,
    mismatches: Annotated[
        int,
        typer.Option(
            "--mismatches", min=0, max=1, help="1: also of all amino-acid sequences within one mismatch, added up."
        ),
    ] = 0,
    genes: Annotated[
        Literal["call", "any"],
        typer.Option(
            "--genes",
            help="Count scenarios with the V and J alleles that a row's calls name (an allele, a gene, a family, or a "
            "list), or with any.",
        ),
    ] = "call",
    normalize: Annotated[
        Literal["productive", "none"],
        typer.Option(
            "--normalize",
            help="Probability among productive recombinations (other junctions are excluded), or among all.",
        ),
    ] = "none",
    selection: Annotated[
        bool,
        typer.Option(
            "--selection",
            help="Also the model's selection factor (hpcvdj infer-selection) of each productive junction, and its "
            "probability after selection.",
        ),
    ] = False,
    joint: options.Joint = False,
    ties: options.TiesOption = "none",
    force: options.Force = False,
    backend: options.BackendOption = "auto",
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail on the first row that has no probability.", rich_help_panel=MORE)
    ] = False,
    strict_binding: options.StrictBinding = False,
    threads: options.Threads = None,
    resume: options.Resume = False,
    batch_rows: options.BatchRows = None,
    checkpoint_every: options.CheckpointEvery = options.DEFAULT_CHECKPOINT_SECONDS,
    patience: options.Patience = options.DEFAULT_PATIENCE,
    overwrite: options.Overwrite = False,
) -> None:
    """Compute how probable it is that V(D)J recombination makes each junction (generation probability, Pgen).

    Adds columns: pgen_nt, of the nucleotide sequence; pgen_aa, of its amino acids (empty for a junction out of frame;
    the only one for tables that have junction_aa and no junction);
    with --mismatches 1 pgen_aa_1mm, of all amino-acid sequences that differ from it by at most one residue, added up;
    and pgen_excluded, why a row has no probability. With --selection q_factor, the factor Q; p_post, which is pgen_aa Q
    over the probability of a productive recombination; and q_excluded, why a row has neither.

    The numbers are probabilities of one recombination under the model: of any, or of a productive one with --normalize
    productive, which divides them by the probability of that (hpcvdj models show). With given genes
    they are those of scenarios with these genes, not conditional on them. A gene that the model lacks excludes the
    row. The numbers are the same for any number of ranks and threads.

    Runs are stopped, saved and resumed as those of `hpcvdj count`.

    Example: hpcvdj pgen repertoire.tsv -m mouse_trb -o pgen.tsv
    """
    run = common.begin(threads, patience)
    log_if_serial(run.world)

    def settled() -> "tuple[Model, PgenConfig, Reading]":
        from hpcvdj.chance.check import Checks
        from hpcvdj.counting.config import PgenConfig, pgen_names
        from hpcvdj.recombination.symbols import read_alphabet
        from hpcvdj.repertoires.reading import reading_of
        from hpcvdj.repertoires.sequence_fields import first_fields

        symbols = read_alphabet(alphabet) if alphabet else None
        opening = options.opening(table_format, columns)
        reading = reading_of(first_fields(junctions, opening), sequence_field, symbols, opening, strict=strict)
        names = pgen_names(sequence, mismatches, amino_acids=reading.alphabet is not None, selection=selection)
        config = PgenConfig(names, genes, backend, strict_binding=strict_binding, normalize=normalize, joint=joint)
        return config.model(Checks(ties).model(options.used_model(model))), config, config.reads(reading)

    loaded, config, reading = run.from_root(settled)
    started = Started(resume, overwrite, checkpoint_every, batch_rows)

    def check(tables: "list[Inputs]") -> dict[str, Any]:
        from hpcvdj.chance.check import Checks, check_tables

        return check_tables(Checks(ties, force=force), tables, loaded, log.warning, config.names[0]).facts()

    plan = partial(planned, junctions, output, reading, together=together)
    compute_each(run, plan, loaded, config, started, check)
