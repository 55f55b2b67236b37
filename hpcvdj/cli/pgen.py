"""`hpcvdj pgen`."""

from functools import partial
from typing import TYPE_CHECKING, Any

from hpcvdj.chance.settings import Checks, Force, MissingAllelesOption, TiesOption
from hpcvdj.cli import common, options
from hpcvdj.cli.computing import compute_each, planned
from hpcvdj.probabilities.settings import PgenSettings
from hpcvdj.repertoires.settings import Strict, TableSettings
from hpcvdj.runs.settings import Launch, Started

if TYPE_CHECKING:
    from hpcvdj.probabilities.settings import PgenConfig
    from hpcvdj.recombination.models import Model
    from hpcvdj.repertoires.inputs import Inputs
    from hpcvdj.repertoires.reading import Reading
    from hpcvdj.repertoires.table import Table


def command(
    junctions: options.Tables,
    model: options.ModelName,
    output: options.Output,
    settings: PgenSettings,
    opening: TableSettings,
    started: Started,
    launch: Launch,
    ties: TiesOption = "none",
    force: Force = False,
    missing_alleles: MissingAllelesOption = "exclude",
    strict: Strict = False,
    together: options.Together = False,
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
    run = common.begin(launch, shared=True)
    # All ranks import at once, not first root and then, after it, the others.
    from hpcvdj.api.tables import used_model
    from hpcvdj.recombination.symbols import read_alphabet
    from hpcvdj.repertoires.folders import tables_in
    from hpcvdj.repertoires.reading import reading_of
    from hpcvdj.repertoires.sequence_fields import first_fields

    checks = Checks(ties=ties, force=force, missing_alleles=missing_alleles)

    def settled() -> "tuple[list[Table], Model, PgenConfig, Reading]":
        symbols, opened = read_alphabet(settings.alphabet) if settings.alphabet else None, opening.opening()
        tables = tables_in(junctions, opened)
        reading = reading_of(first_fields(tables), settings.sequence_field, symbols, opened, strict=strict)
        config = settings.config(amino_acids=reading.alphabet is not None)
        return tables, config.model(checks.adapted(used_model(model), settings.genes)), config, config.reads(reading)

    tables, loaded, config, reading = run.from_root(settled)

    def check(inputs: "list[Inputs]") -> dict[str, Any]:
        from hpcvdj.chance.check import check_tables
        from hpcvdj.chance.first_rows import WITH_OPTION

        return check_tables(checks, inputs, loaded, config.names[0], remedy=WITH_OPTION).facts()

    plan = partial(planned, junctions, tables, output, reading, together=together)
    compute_each(run, plan, loaded, config, started, check)
