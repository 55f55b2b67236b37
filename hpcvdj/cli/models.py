"""`hpcvdj models`."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hpcvdj.cli import common, options
from hpcvdj.cli.declared import App
from hpcvdj.errors import few, installing
from hpcvdj.options import setting
from hpcvdj.runs.settings import Overwrite

if TYPE_CHECKING:
    from hpcvdj.model_views.comparison import Unshared
    from hpcvdj.model_views.likelihoods import Likelihoods
    from hpcvdj.recombination.selection import SelectionFactor

app = App(help="Recombination models: what there is, what is in one, how different two are, and those of SONIA.")

_MODEL = "Name that hpcvdj models list shows, or folder in IGoR's format."


@app.command("list", of_root=True)
def list_models() -> None:
    """List the models that can be named: species, locus, selection, rows they were inferred from, what to use them for.

    They are those of an installed olga (pip install 'hpcvdj[models]') and those that come with hpcvdj. Any folder in
    IGoR's format can be given, too. In models of olga, alleles that are known to be wrong are corrected
    (hpcvdj models show); NAME:published keeps them.

    Example: hpcvdj pgen repertoire.tsv -m human_trb_m15 -o pgen.tsv
    """
    from hpcvdj.recombination.igor import OLGA_FOLDERS, model_folders, origin_of
    from hpcvdj.recombination.origin import species_in
    from hpcvdj.recombination.selection import FILE

    folders = model_folders()
    rows = []
    for name, folder in folders.items():
        origin = origin_of(folder)
        rows.append([
            name, origin.species or species_in(name), name.split("_")[1].upper(),
            "yes" if (folder / FILE).exists() else "no", "" if origin.rows is None else f"{origin.rows:,}",
            origin.purpose,
        ])  # fmt: skip
    heads = ["model", "species", "locus", "selection", "rows", "what it is"]
    common.print_table(common.console(), heads, rows, left=6)
    if not OLGA_FOLDERS.keys() <= folders.keys():
        common.answer(f"not installed: {', '.join(OLGA_FOLDERS)}: {installing('models')}")


@app.command("from-sonia", of_root=True)
def from_sonia(
    folder: Annotated[Path, options.argument("FOLDER", "Folder of a linear model of SONIA or soNNia.")],
    output: Annotated[Path, options.output("MODEL", "Folder to write: the model with its factor.")],
    overwrite: Overwrite = False,
) -> None:
    """Make a model with a selection factor of one that SONIA or soNNia inferred.

    Reads model_params.txt, model_marginals.txt and the anchors, and Q from features.tsv and log.txt: the energies of
    lengths, of residues by their position from the left and from the right, and of V and J genes, alone or together;
    the limits of the energy; and Z. The result is a copy of the recombination model with the factor in selection.tsv,
    which pgen, generate, enrich, annotate and associate take. Neural and paired models are refused.

    Draws from the model give the mean of Q, which should be 1, and that of each V and J gene.

    Example: hpcvdj models from-sonia human_T_beta -o human_trb_sonia
    """
    from hpcvdj.inference.folder import write_with_selection
    from hpcvdj.inference.selection import sonia_model
    from hpcvdj.recombination.corrections import checked
    from hpcvdj.recombination.igor import folder_texts
    from hpcvdj.storage.folders import exclusive_folder

    with exclusive_folder(output, folder, overwrite=overwrite):
        model = sonia_model(folder)
        factor = model.require_selection()
        write_with_selection(folder, output, model, dict(factor.facts), overwrite=overwrite)
    _print_sonia(factor, common.say)
    if checked(folder_texts(folder), published=False).corrected:
        common.say(f"alleles    as in {folder}, since Q was inferred with these: -m {output}:published keeps them")
    common.say(f"written    {output}")


@app.command("show", of_root=True)
def show(
    model: Annotated[str, options.argument("MODEL", _MODEL)],
    output: Annotated[
        Path | None,
        options.output("FIG", "Draw the model's distributions on a page: .png or .svg; needs matplotlib."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Show what a model has: its genes, how often they are chosen, and the lengths of insertions.

    With -o, also draw a page: usage of V, D and J, D given J, deletions of V and J, deletions at both ends of the three
    most frequent D alleles, and lengths and bases of insertions; of a model of `hpcvdj infer` also its convergence, and
    two standard errors of P(V) and of lengths, if it has them.

    Example: hpcvdj models show mouse_trb -o mouse_trb.png
    """
    from hpcvdj.model_views.page import InferenceRecord, draw, usable
    from hpcvdj.recombination.germline import SEGMENT_TYPES
    from hpcvdj.recombination.igor import load_model, model_folder
    from hpcvdj.recombination.productive import productive_probability
    from hpcvdj.storage.plots import require_plottable

    if output is not None:
        require_plottable(output, overwrite=overwrite)
    loaded, folder = load_model(model), model_folder(model)
    common.answer(f"model      {loaded.name}, SHA-256 {loaded.digest}")
    common.answer(f"folder     {folder}")
    if loaded.origin.purpose:
        common.answer(f"purpose    {loaded.origin.purpose}")
    for segment in SEGMENT_TYPES.values():
        templates = loaded.templates(segment)
        if not templates:
            continue
        chance = loaded.p_segment(segment)
        common.answer(f"{segment} alleles  {usable(loaded, segment)}")
        most = sorted(loaded.contributing(segment), key=lambda allele: -chance[allele])[:5]
        common.answer("           " + ", ".join(f"{templates[k].allele} {100 * chance[k]:.1f} %" for k in most) + " …")
    for name, insertion in loaded.named_insertions.items():
        bases = ", ".join(f"{base} {100 * chance:.1f} %" for base, chance in zip("ACGT", insertion.first, strict=True))
        longest = len(insertion.lengths) - 1
        common.answer(f"insertion  {name}: mean {insertion.mean_length:.2f} nt, at most {longest}; first base {bases}")
    common.answer(f"productive {100 * productive_probability(loaded):.2f} % of recombinations")
    _print_origin(folder)
    if loaded.selection is not None:
        _print_selection(loaded.selection, folder)
    for head, alleles in (("corrected", loaded.corrected), ("wrong", loaded.faults)):
        for allele, fault in alleles.items():
            common.answer(f"{head:<10} {allele}: {fault}")
    if output is not None:
        draw(loaded, output, InferenceRecord.read(folder), overwrite=overwrite)
        common.say(f"written    {output}")


def _print_origin(folder: Path) -> None:
    """Print where a model of `hpcvdj infer` comes from."""
    from hpcvdj.recombination.origin import read_facts

    facts = read_facts(folder)
    if facts is None:
        return
    tables = few([str(table[0]) for table in facts["tables"]])
    held_out = facts["held_out_log_likelihood_per_row"]
    of_held_out = "" if held_out is None else f"; {held_out:.5f} of {facts['rows_held_out']:,} rows held out"
    common.answer(f"inferred   from {facts['rows_counted']:,} rows of {tables}, starting from {facts['start']['name']}")
    common.answer(f"likelihood {facts['log_likelihood_per_row']:.5f} nats per row{of_held_out}")
    for warning in facts["warnings"]:
        common.answer(f"warning    {warning}")


def _print_selection(selection: "SelectionFactor", folder: Path) -> None:
    from hpcvdj.recombination.origin import read_selection_facts
    from hpcvdj.recombination.selection import HPCVDJ

    if selection.scheme is not HPCVDJ:
        _print_sonia(selection)
        return
    facts, written = selection.facts, read_selection_facts(folder)
    tables = few([str(table[0]) for table in written["tables"]]) if written else "junctions"
    common.answer(
        f"selection  {len(selection.weights):,} weights from {facts['rows']:,} junctions of {tables}, ln Q from "
        f"{selection.smallest:.2f} to {selection.largest:.2f}"
    )
    common.answer(
        f"held out   gain {facts['gain_nats']:.4f} ± {facts['gain_standard_error']:.4f} nats per junction, AUC "
        f"{facts['auc']:.4f}, of {facts['held_out']:,} junctions"
    )
    for warning in facts["warnings"]:
        common.answer(f"warning    {warning}")


def _print_sonia(selection: "SelectionFactor", say: Callable[[str], None] = common.answer) -> None:
    facts = selection.facts
    say(
        f"selection  {len(selection.weights):,} weights of SONIA, Z {facts['Z']:.4g}, ln Q from "
        f"{selection.smallest:.2f} to {selection.largest:.2f}"
    )
    say(f"mean of Q  {facts['mean_of_q']:.4g} over {facts['fresh']:,} productive draws from the model")


@app.command("compare", of_root=True)
def compare(
    a: Annotated[str, options.argument("A", _MODEL)],
    b: Annotated[str, options.argument("B", "The other model.")],
    output: Annotated[
        Path | None,
        options.output(
            "OUT", "Table of all divergences, also of single alleles and bases: .tsv, .tsv.gz, .tsv.zst or .parquet."
        ),
    ] = None,
    likelihood_of: Path | None = setting("table of junctions that neither model was inferred from: also say how "
                                         "likely they are under each", None, metavar="JUNCTIONS"),
    overwrite: Overwrite = False,
) -> None:  # fmt: skip
    """Say how different two models of one locus are: divergences of each of their distributions, in bits.

    JS is the Jensen-Shannon divergence: 0 for equal distributions, 1 if no outcome is possible in both. KL(A‖B) is the
    Kullback-Leibler divergence: the information per event that is lost if B is taken for A; inf if B excludes what A
    allows. Alleles are compared by name, over those that both models have; the summary lists the others. A distribution
    that depends on an allele or a base is compared for each, and the mean is shown: KL(A‖B) weighted by the
    probabilities of A, KL(B‖A) by those of B, JS by the mean of both.

    With --likelihood-of, the log-likelihood of a model is the mean of ln(Pgen / P(a junction is made)) of the rows,
    with their V and J, over the rows that both models can make.

    Example: hpcvdj models compare human_trb my_model -o divergences.tsv
    """
    from hpcvdj.api.models import compare_models
    from hpcvdj.model_views.likelihoods import likelihoods_of
    from hpcvdj.recombination.igor import load_model
    from hpcvdj.repertoires.writers import require_writable_table, write_table

    if output is not None:
        require_writable_table(output, overwrite=overwrite)
    models = {"A": load_model(a), "B": load_model(b)}
    comparison = compare_models(*models.values())
    likelihoods = None if likelihood_of is None else likelihoods_of(likelihood_of, models)
    if output is not None:
        write_table(output, comparison.to_table().to_batches(), overwrite=overwrite)
    for letter, model in models.items():
        common.answer(f"model {letter}    {model.name}, SHA-256 {model.digest}")
    for letter, only in (("A", comparison.only_a), ("B", comparison.only_b)):
        common.answer(f"only in {letter}  {_unshared(only)}")
    rows = [
        [row.event, row.distribution, *map(_bits, (row.js_bits, row.kl_ab_bits, row.kl_ba_bits)),
         _percent(row.probability_a), _percent(row.probability_b)]
        for row in comparison.rows if not row.condition
    ]  # fmt: skip
    heads = ["event", "distribution", "JS, bits", "KL(A‖B), bits", "KL(B‖A), bits", "compared of A", "of B"]
    common.print_table(common.console(), heads, rows, left=2)
    if likelihood_of is not None and likelihoods is not None:
        _print_likelihoods(likelihood_of, likelihoods, models)
    if output is not None:
        common.say(f"written    {output}")


def _print_likelihoods(path: Path, likelihoods: "Likelihoods", letters: Iterable[str]) -> None:
    import numpy as np

    for letter in likelihoods.inferred_from:
        common.answer(f"warning    {path} is what model {letter} was inferred from: it looks better than it is")
    if 2 * likelihoods.in_frame > likelihoods.junctions:
        common.answer(
            f"warning    {likelihoods.in_frame:,} of {likelihoods.junctions:,} junctions are in frame, and selection "
            "has seen those that are productive: give out-of-frame rows"
        )
    values = likelihoods.values
    possible = np.asarray((values > 0).all(axis=0))
    number = int(possible.sum())
    common.answer(f"rows       {len(possible):,} read, {number:,} that both models can make")
    for letter, of_model in zip(letters, values, strict=True):
        cannot = f"{int((of_model == 0).sum()):,} with probability 0, {int(np.isnan(of_model).sum()):,} excluded"
        mean = f"{np.log(of_model[possible]).mean():.5f} nats per row; " if number else ""
        common.answer(f"likelihood {letter}: {mean}{cannot}")
    if number > 1:
        gain = np.log(values[1, possible] / values[0, possible])
        interval = 1.96 * gain.std(ddof=1) / np.sqrt(number)
        common.answer(f"           B - A: {gain.mean():+.5f} ± {interval:.5f} (95 %)")


def _unshared(only: "Unshared") -> str:
    if not only.alleles:
        return "no allele"
    most = sorted(only.alleles, key=lambda allele: -only.alleles[allele])
    number = f"{len(most):,} allele(s), in {_percent(only.probability)} of the recombinations"
    return f"{number}: {few([f'{allele} {_percent(only.alleles[allele])}' for allele in most], 5)}"


def _bits(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.2f} %"
