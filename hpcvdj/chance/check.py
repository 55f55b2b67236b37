"""The check that every command makes before it computes anything: does the model fit the table?

A sample of the table's rows is compared with junctions that the model makes (`hpcvdj.chance.fit`), with the models that
have a name, and with the calls of other genes (`hpcvdj.chance.calls`).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.chance.calls import CONTRADICTED, RARE_ALLELE, SEGMENTS, SIDES, rare_alleles, sides_of
from hpcvdj.chance.draws import recombined
from hpcvdj.chance.first_rows import WITHOUT_COLUMN, lacking_nucleotides, mutated_rows, other_amino_acids
from hpcvdj.chance.fit import TAIL, Frame, Side, compare
from hpcvdj.chance.model_fit import MANY_IMPOSSIBLE, MOST_IMPOSSIBLE, UNCHECKED, ModelFit
from hpcvdj.chance.p_values import Counts, Floats
from hpcvdj.chance.settings import Checks
from hpcvdj.errors import InputError, few, log, option
from hpcvdj.generation.settings import GenerationSettings
from hpcvdj.kernels.neighbours.blocks import groups
from hpcvdj.probabilities.productive import is_productive
from hpcvdj.probabilities.settings import PgenConfig
from hpcvdj.recombination.calls import locus_of
from hpcvdj.recombination.exclusions import ExclusionKind
from hpcvdj.recombination.germline import SegmentType
from hpcvdj.recombination.igor import model_folders, models_of, read_model
from hpcvdj.recombination.models import ANY, Alleles, Model, kept_with_model
from hpcvdj.recombination.productive import FIRST, LAST, productive_probability
from hpcvdj.recombination.repertoire import CDR3_ENDS, PGEN_COLUMNS, PgenProblem, Repertoire
from hpcvdj.repertoires.genes import by_gene, has_nucleotides, kinds_of, sequences
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import Junctions
from hpcvdj.repertoires.reading import Reading
from hpcvdj.repertoires.species import exchanged_calls, species_warning
from hpcvdj.repertoires.tally import tally_of
from hpcvdj.runs.run import Run
from hpcvdj.values.compute import count_in_memory

SAMPLE = 100_000
"""The largest number of rows of the tables that are compared."""

DRAWN = 200_000
"""The number of recombinations that are drawn for the comparison."""

FEWEST_TO_COMPARE = 200
"""The number of productive rows from which on they are compared with draws."""

FEWEST_TO_SAY, FEWEST_TO_REFUSE = 20, 100
"""The numbers of rows from which on a table is checked, and from which on it is refused."""

FEW_WITH_ENDS = 0.2
"""The largest share of rows with the ends of a junction in a table of CDR3s, which have such ends by chance."""

MANY_WITH_ENDS = 0.5
"""The share of rows with such ends from which on a table of CDR3s has junctions."""

MOST_REVERSED = 0.5
"""The share of rows with the ends of a reversed junction from which on a table is of the other strand: by chance, one
row in 300 has such ends."""

CALLS = 20_000
"""The largest number of productive rows whose calls are compared with other genes."""

MOST_LINES = 10
"""The largest number of findings that are logged."""

EXAMPLES = 5
"""The number of rows that are named as examples."""

OTHERS = 5_000
"""The largest number of productive rows that are compared under other models."""

FEWEST_OF_LENGTH = 500
"""The number of draws that a quantile of a length is of."""

BETTER = 0.25
"""The gain in nats per row from which on another model is named."""

IMPOSSIBLE = "the model cannot make it"
BROKEN_GENE = "the model makes its V or J gene wrongly"
CONTRADICTED_CALL = "a call contradicts the bases"
OF_RARE_ALLELE = "an allele makes it that the model hardly ever chooses"
"""The reasons for which something is not tested."""

_FLOOR = np.log(1e-40)
"""The log-likelihood that stands for a row that a model cannot make."""


MOST_KEPT = 4
"""The number of models whose draws are kept."""

_KEPT: dict[tuple[Any, ...], tuple[Repertoire, dict[tuple[str, ...], dict[Frame, Side]]]] = {}


def check_model(checks: Checks, sample: Junctions, model: Model, name: str = "", tables: str = "") -> ModelFit:
    """Compare a sample of rows with a model, and log what is wrong.

    name    the member of `PGEN_COLUMNS` that is compared; by default that of the letters that are read
    tables  the names of the tables, for messages

    Raises InputError if the model cannot make half of the rows.
    """
    fit = replace(check_fit(sample, model, name), keep_misfits=checks.keep_misfits, force=checks.force)
    if not checks.force:
        _require_possible(fit, model, sample)
    lines, below = fit.lines(), {}
    if lines and fit.compared:
        log.warning(
            "%s does not fit all of %s different rows%s that were compared with what it makes:", model.name,
            f"{fit.rows:,}", f" of {tables}" * bool(tables),
        )  # fmt: skip
        below = {"below": True}
    for line in lines[:MOST_LINES]:
        log.warning("%s", line, extra=below)
    if lines[MOST_LINES:]:
        hidden = len(lines) - MOST_LINES
        log.warning("findings about how %s fits the rows that are not shown: %d", model.name, hidden, extra=below)
    return fit


def check_tables(
    checks: Checks, inputs: Sequence[Inputs], model: Model, name: str = "", run: Run | None = None, *,
    remedy: str = WITHOUT_COLUMN,
) -> ModelFit:  # fmt: skip
    """Check rows of tables that are read in the same way, as `check_model` does; once if `run` is `keeping`.

    name    the member of `PGEN_COLUMNS` that is computed for the alleles of each row, so that these are checked, too;
            by default, all alleles of a gene are taken
    remedy  as of `lacking_nucleotides`; empty if such rows need no warning
    """
    together = replace(inputs[0], tables=tuple(table for part in inputs for table in part.tables))
    reading = replace(together.reading, productive=None, strict=False, reads=False)
    compared = name or PGEN_COLUMNS[0 if reading.alphabet is None else 1]
    of = checks, reading, tuple(table.path for table in together.tables), compared, str(model.facts(selection=False))

    def check() -> ModelFit:
        sample = together.sample(model, SAMPLE)
        tables = together.tables
        without = lacking_nucleotides(tables, remedy) if remedy and reading.alphabet is None else ()
        for line in chain(without, other_amino_acids(tables), mutated_rows(tables, model)):
            log.warning("%s", line)
        if not checks.force:
            _require_readable(sample, model, together.names)
            _require_cdr3s(sample, reading, together.names)
        return check_model(checks, sample, model, compared, together.names)

    fit = (run or Run()).once(("fit", *of), None, check)
    for line in fit.lines_of_alleles() if name else ():
        log.warning("%s", line)
    return fit


def check_fit(sample: Junctions, model: Model, name: str = "") -> ModelFit:
    """Compare at most `SAMPLE` rows of a table, drawn at random, with a model, on this rank's cores.

    sample  junctions with the codons of Cys 104 and Phe/Trp 118, also out of frame
    name    as for `check_model`
    """
    names = (name or PGEN_COLUMNS[0 if has_nucleotides(sample.repertoire) else 1],)
    if len(sample) < FEWEST_TO_SAY:
        return UNCHECKED
    named = sample.repertoire.pairs[0][0].allele != ANY
    repertoire, order = by_gene(sample.repertoire, model) if named else (sample.repertoire, np.arange(len(sample)))
    distinct = _distinct(repertoire)
    repertoire, table_of = repertoire.subset(distinct), sample.repertoire_of[order[distinct]]
    lacking, alleles = (
        sum(rows for exclusion, rows in sample.excluded.counts() if exclusion.kind in kinds)
        for kinds in (_LACKING, _LACKING[1:2])
    )
    p = _probabilities(repertoire, model, names)
    tables = tuple(_other_tables(p <= 0, table_of, sample.repertoire_ids or []))
    impossible = float((p <= 0).mean()) if len(repertoire) else 0.0
    fit = ModelFit(len(repertoire), impossible, lacking, alleles, _unmade(sample.repertoire, model), tables)
    productive = _in_frames(repertoire, p)["productive"]
    shuffled = np.random.default_rng(0).permutation(len(productive))
    if fit.impossible >= MANY_IMPOSSIBLE or len(productive) >= FEWEST_TO_COMPARE:
        fit = replace(fit, better=_better(productive, np.sort(shuffled[:OTHERS]), model, names))
    if len(productive) < FEWEST_TO_COMPARE or fit.impossible >= MOST_IMPOSSIBLE:
        return fit
    fit = replace(fit, compared=True)
    if not named:
        return fit
    genes, lengths = compare(_in_frames(repertoire, p), _draws_in_frames(model, names), model)
    calls = _calls(productive, np.sort(shuffled[:CALLS]), model, names)
    wrong = tuple(gene for gene in genes if gene.finding is not None)
    return replace(fit, genes=wrong, lengths=tuple(lengths), **calls)


def _unmade(repertoire: Repertoire, model: Model) -> tuple[tuple[str, int], ...]:
    """Return alleles that the model (nearly) never chooses, though others of the gene, and their rows; most first."""
    rows = Counter[str]()
    for pair, number in zip(repertoire.pairs, np.diff(repertoire.offsets).tolist(), strict=True):
        for segment, alleles in zip(SEGMENTS, pair, strict=True):
            if not model.makes(segment, alleles.places) and any(
                model.of_gene(segment, name) for name in alleles.allele.split(",")
            ):
                rows[alleles.allele] += number
    return tuple(rows.most_common())


def _other_tables(impossible: NDArray[np.bool_], table_of: NDArray[np.int32], names: Sequence[str]) -> Iterator[str]:
    """Yield the tables, or repertoires, of which the model cannot make half of the rows."""
    for index, name in enumerate(names):
        of_table = impossible[table_of == index]
        if len(of_table) >= FEWEST_TO_REFUSE and of_table.mean() >= MOST_IMPOSSIBLE:
            yield name


def _require_readable(sample: Junctions, model: Model, names: str) -> None:
    """Raise InputError if no row can be read, and most have genes that the model lacks."""
    tally = tally_of(sample)
    lacking = sum(rows for exclusion, rows in tally.excluded if exclusion.kind in _OF_OTHERS)
    if len(sample) == 0 and lacking >= max(FEWEST_TO_SAY, tally.rows_read / 2):
        of = f"{names}: " if names else ""
        fault = exchanged_calls(tally, model) or f"{species_warning(tally, model)} Give their model"
        raise InputError(f"{of}{fault}; {option('force', True)} goes on")


def _require_cdr3s(sample: Junctions, reading: Reading, tables: str) -> None:
    """Raise InputError if the CDR3s of a table, in amino acids, are whole junctions; warn if it has few rows."""
    if reading.sequence_field != "cdr3_aa":
        return
    first, last = map(re.escape, reading.ends)
    texts = sequences(sample.repertoire, np.arange(len(sample)))
    has_ends = np.asarray(pc.match_substring_regex(texts, f"^{first}{FIRST}.*[{LAST}]{last}$"))
    names = sample.repertoire_ids or [tables]
    of_table = [(name, has_ends[sample.repertoire_of == k]) for k, name in enumerate(names)]
    wrong = {name: len(own) for name, own in of_table if len(own) and own.mean() >= MANY_WITH_ENDS}
    if not wrong:
        return
    column = dict(reading.opening.columns).get("cdr3_aa", "cdr3_aa")
    fault = (
        f"{few(wrong)}{': ' * any(wrong)}most sequences of cdr3_aa begin with C and end with F, V or W: they are "
        f"junctions, not CDR3s; {option('columns', {'junction_aa': column})} says so"
    )
    # A few CDR3s may have such ends.
    if max(wrong.values()) < FEWEST_TO_SAY:
        log.warning("%s", fault)
    else:
        raise InputError(f"{fault}; {option('force', True)} goes on")


def _require_possible(fit: ModelFit, model: Model, sample: Junctions) -> None:
    """Raise InputError if the model cannot make half of the rows of all tables, or of one table."""
    too_many = fit.rows >= FEWEST_TO_REFUSE and fit.impossible >= MOST_IMPOSSIBLE
    if not too_many and not fit.tables:
        return
    share = "half or more of their rows" if fit.tables else f"{100 * fit.impossible:.0f} % of {fit.rows:,} rows"
    tables = f"{few(fit.tables)}: " if fit.tables else ""
    if remedy := _without_ends(sample, fit.tables):
        raise InputError(f"{tables}{model.name} cannot make {share}{remedy}; {option('force', True)} goes on")
    other = f", or better {option('model', fit.better[0])}" if fit.better is not None else ""
    raise InputError(
        f"{tables}{model.name} cannot make {share}: are they of another species or locus, with calls that are not "
        f"theirs, or cut elsewhere than at Cys 104 and Phe/Trp 118? Give their model{other}; {option('force', True)} "
        "goes on"
    )


def _without_ends(sample: Junctions, tables: Sequence[str]) -> str:
    """What to do if most rows of `tables`, by default of all, lack the ends of junctions; else empty.

    They may be CDR3s, or of the other strand.
    """
    names = sample.repertoire_ids or []
    rows = np.arange(len(sample))
    if tables:
        rows = rows[np.isin(sample.repertoire_of, [names.index(name) for name in tables])]
    nucleotides = has_nucleotides(sample.repertoire)
    ends = "^TG[CT].*(TT[CT]|GT[ACGT]|TGG)$" if nucleotides else f"^[{FIRST}].*[{LAST}{CDR3_ENDS[1]}]$"
    texts = sequences(sample.repertoire, rows)
    if len(rows) == 0 or np.mean(pc.match_substring_regex(texts, ends)) > FEW_WITH_ENDS:
        return ""
    if nucleotides and np.mean(pc.match_substring_regex(texts, _REVERSED)) > MOST_REVERSED:
        return ": most are reverse complements of junctions: give the strand that begins with Cys 104"
    lacking = ": most do not begin with Cys 104 and end with Phe/Trp 118"
    if nucleotides:
        return f"{lacking}, as a junction does: give junctions, not CDR3s"
    return f"{lacking}: {option('columns', {'cdr3_aa': 'junction_aa'})} says that junction_aa has CDR3s without them"


_REVERSED = "^([AG]AA|[ACGT]AC|CCA).*[AG]CA$"
"""The reverse complements of the ends of a junction."""

_OF_OTHERS = (ExclusionKind.NOT_IN_MODEL, ExclusionKind.TIE_NOT_IN_MODEL, ExclusionKind.OTHER_LOCUS)
_LACKING = (ExclusionKind.NOT_IN_MODEL, ExclusionKind.ALLELE_NOT_IN_MODEL, ExclusionKind.TIE_NOT_IN_MODEL)


def _probabilities(repertoire: Repertoire, model: Model, names: tuple[str, ...]) -> Floats:
    values = count_in_memory(PgenProblem(repertoire, model, names), PgenConfig(names, backend="cpu"), Run().alone())
    assert values is not None
    return np.asarray(values[:, 0])


def _distinct(repertoire: Repertoire) -> Counts:
    """Return the rows of distinct junctions, ascending; at most `SAMPLE` of them, drawn at random."""
    first = np.sort(groups(repertoire.words, repertoire.lengths.astype(np.int64), kinds_of(repertoire))[0])
    return first if len(first) <= SAMPLE else np.sort(np.random.default_rng(0).permutation(first)[:SAMPLE])


def _in_frames(repertoire: Repertoire, p: Floats) -> dict[Frame, Side]:
    rows: dict[Frame, Any] = {"productive": is_productive(repertoire), "out-of-frame": repertoire.lengths % 3 > 0}
    return {frame: Side(repertoire.subset(np.flatnonzero(kept)), p[kept]) for frame, kept in rows.items()}


def _draws_in_frames(model: Model, names: tuple[str, ...], number: int = DRAWN) -> dict[Frame, Side]:
    """Return draws by genes; those of the last few models are kept, as a notebook checks table after table."""
    # A model that was changed in memory keeps the digest of its files, but hardly its P(productive).
    key = (number, str(model.facts()), model.joint, productive_probability(model))
    if key not in _KEPT:
        run = Run().alone()
        plan = GenerationSettings(number, seed=int(np.random.SeedSequence([0, 2]).generate_state(1)[0]))
        drawn = recombined(model, plan, PgenConfig().reads(Reading()), run.bind("cpu"), run)
        assert drawn is not None
        _KEPT[key] = drawn, {}
        if len(_KEPT) > MOST_KEPT:
            _KEPT.pop(next(iter(_KEPT)))
    drawn, sides = _KEPT[key]
    if names not in sides:
        sides[names] = _in_frames(drawn, _probabilities(drawn, model, names))
    return sides[names]


def limits_of(model: Model, names: tuple[str, ...], number: int = DRAWN) -> tuple[float, float]:
    """Return the largest probability of productive draws by genes, and their quantile of `TAIL`.

    number  of recombinations that are drawn
    """
    of_drawn = _draws_in_frames(model, names, number)["productive"].p
    return float(of_drawn.max(initial=0.0)), float(np.quantile(of_drawn, TAIL)) if len(of_drawn) else 0.0


@kept_with_model
def likely_of_length(model: Model, names: tuple[str, ...], share: float) -> Floats:
    """Return the probability that all but `share` of the productive draws of each length have, float64 [256].

    It is 0 if the model makes no productive junction.
    Rare lengths get draws of the nearest lengths, until there are `FEWEST_OF_LENGTH`.
    """
    drawn = _draws_in_frames(model, names)["productive"]
    if not len(drawn.p):
        return np.zeros(256)
    order = np.argsort(drawn.repertoire.lengths, kind="stable")
    ends = np.searchsorted(drawn.repertoire.lengths[order].astype(np.int64), np.arange(257))
    missing = np.maximum(FEWEST_OF_LENGTH - np.diff(ends), 0)
    ranges = zip(np.maximum(ends[:-1] - missing, 0).tolist(), (ends[1:] + missing).tolist(), strict=True)
    return np.array([np.quantile(drawn.p[order[low:high]], share) for low, high in ranges])


def contradicting(
    repertoire: Repertoire, model: Model, names: tuple[str, ...] = PGEN_COLUMNS[:1], p: Floats | None = None,
    limits: tuple[float, float | Floats] | None = None, epsilon: float = CONTRADICTED,
) -> NDArray[np.int8]:  # fmt: skip
    """Find the call of each junction that contradicts its bases, int8 [junctions], as the index in `SIDES`.

    repertoire  the junctions of this rank, by genes
    p           float64 [junctions]: their probabilities; computed by default
    limits      as for `hpcvdj.chance.calls.sides_of`; those of `limits_of` by default
    epsilon     as for `hpcvdj.chance.calls.contradicted`
    """
    p = _probabilities(repertoire, model, names) if p is None else p
    return sides_of(
        repertoire, p, limits or limits_of(model, names), model,
        lambda others: [_probabilities(other, model, names) for other in others], epsilon,
    )  # fmt: skip


def by_reason(sides: NDArray[np.int8]) -> dict[str, int]:
    """Return how many junctions are not tested for their calls, by the reason, from what `contradicting` returns."""
    rare = int((sides >= RARE_ALLELE).sum())
    return {OF_RARE_ALLELE: rare, CONTRADICTED_CALL: int((sides > 0).sum()) - rare}


def check_calls(repertoire: Repertoire, model: Model) -> ModelFit:
    """Compare the calls of nucleotide junctions, in any frame, with their bases; only fields about calls are set.

    At most `CALLS` junctions, drawn at random, are compared.
    """
    number, names = len(repertoire), PGEN_COLUMNS[:1]
    rows = np.random.default_rng(0).choice(number, min(number, CALLS), replace=False, shuffle=False)
    part, _ = by_gene(repertoire.subset(np.sort(rows)), model)
    side = Side(part, _probabilities(part, model, names))
    # Fewer draws than for genes and lengths, which would take most of the time, are enough.
    return ModelFit(**_calls(side, np.arange(len(part)), model, names, limits_of(model, names, CALLS)))


def _calls(
    side: Side, rows: Counts, model: Model, names: tuple[str, ...], limits: tuple[float, float] | None = None
) -> dict[str, Any]:
    """Return the fields of a `ModelFit` that are about calls; `limits` as for `contradicting`."""
    part = side.repertoire.subset(rows)
    wrong = contradicting(part, model, names, side.p[rows], limits)
    numbers = np.bincount(wrong, minlength=len(SIDES))
    named = np.flatnonzero((wrong > 0) & (wrong < RARE_ALLELE))[:EXAMPLES]
    calls = [tuple(alleles.allele for alleles in part.pairs[kind]) for kind in kinds_of(part)[named].tolist()]
    texts = sequences(part, named).to_pylist()
    examples = [f"{text} called {v}, {j}" for text, (v, j) in zip(texts, calls, strict=True)]
    sides = SIDES[1:RARE_ALLELE]
    contradictions = tuple((side, int(number)) for side, number in zip(sides, numbers[1:], strict=False) if number)
    alleles = tuple(_alleles(part, wrong, model)) if numbers[RARE_ALLELE:].any() else ()
    return {"calls": len(rows), "contradicted": contradictions, "examples": tuple(examples), "alleles": alleles}


def _alleles(repertoire: Repertoire, wrong: NDArray[np.int8], model: Model) -> Iterator[tuple[str, int, int]]:
    """Yield the members of the field `alleles` of a `ModelFit`.

    wrong  int8 [junctions]: the result of `contradicting`
    """
    p = np.ones(len(repertoire))
    for side, segment in enumerate(SEGMENTS, start=RARE_ALLELE):
        for gene, rows in Side(repertoire, p).rows_by_gene(segment).items():
            number = int((wrong[rows] == side).sum())
            if number:
                yield "/".join(rare_alleles(model, segment, gene)), number, len(rows)


def _better(side: Side, rows: Counts, model: Model, names: tuple[str, ...]) -> tuple[str, float] | None:
    """Find the named model under which productive rows are much more likely, and the gain in nats per row.

    The gain is the mean of log-likelihood ratios without the smallest and the largest tenth.
    """
    if not len(rows):
        return None
    part = side.repertoire.subset(rows)
    of_model = _log_likelihoods(side.p[rows], model)
    best: tuple[str, float] | None = None
    for name in models_of(locus_of(model.v[0].allele)):
        other = _named(name)
        if other.digest == model.digest or other.caution is not None:
            continue
        pairs = [(_of_other(other, "V", v), _of_other(other, "J", j)) for v, j in part.pairs]
        gains = _log_likelihoods(_probabilities(replace(part, pairs=pairs), other, names), other) - of_model
        # A few rows must not decide, such as those of an allele that one model lacks.
        gain = float(_trimmed(gains).mean())
        if gain > BETTER + (best[1] if best else 0.0):
            best = name, gain
    return best


def _trimmed(values: Floats) -> Floats:
    """Drop the smallest and the largest tenth of the values; the order changes."""
    tenth = len(values) // 10
    return np.partition(values, (tenth, len(values) - tenth - 1))[tenth : len(values) - tenth]


@cache
def _named(name: str) -> Model:
    # `load_model` would log what is corrected.
    return read_model(model_folders()[name], name)


def _log_likelihoods(p: Floats, model: Model) -> Floats:
    """Return log P(junction, V, J | productive), not below `_FLOOR`."""
    logs = np.full(len(p), _FLOOR)
    np.log(p / productive_probability(model), out=logs, where=p > 0)
    return np.asarray(np.maximum(logs, _FLOOR))


def _of_other(other: Model, segment: SegmentType, alleles: Alleles) -> Alleles:
    """Return the alleles of another model for the same genes; none if it lacks one."""
    if alleles.allele == ANY:
        return other.alleles(segment)
    indices = [other.find(segment, name) for name in alleles.allele.split(",")]
    return other.alleles(segment, [] if None in indices else {index for gene in indices for index in gene or ()})
