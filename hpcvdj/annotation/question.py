"""The question of `hpcvdj annotate`: samples and a database, the answer, its files and its summary."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hpcvdj.annotation.annotate import SampleAnnotation, annotate, sample_of
from hpcvdj.annotation.cache import Prepared, centres_to_prepare, prepared
from hpcvdj.annotation.centres import Centres
from hpcvdj.annotation.depth import DRAWN, Depth, depth_of
from hpcvdj.annotation.settings import AnnotationSettings, DatabaseSettings
from hpcvdj.annotation.union import Probabilities, Union
from hpcvdj.chance.clonotypes import distinct_junctions
from hpcvdj.chance.dealing import Dealt
from hpcvdj.chance.draws import Chance
from hpcvdj.chance.model_fit import UNCHECKED, ModelFit
from hpcvdj.chance.parts import Part
from hpcvdj.chance.question import AnswerOutput, Lines, Question, Rows
from hpcvdj.chance.settings import ClonotypeChoice
from hpcvdj.chance.shown import table_html
from hpcvdj.errors import InputError, few, log, naming, option
from hpcvdj.recombination.calls import Genes
from hpcvdj.recombination.exclusions import counts_json
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.databases import Records
from hpcvdj.repertoires.genes import ends_open, has_nucleotides
from hpcvdj.reports.files import EPITOPES, HITS
from hpcvdj.reports.outputs import DIFFERS, NO_KAPPA, hits_text
from hpcvdj.results.facts import Facts, Targets, read_facts
from hpcvdj.runs.folder import Identity, complete, is_of_another_run
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import NOTHING_YET
from hpcvdj.storage.folders import atomic_folder, exclusive_folder, require_unchanged_folder


class WithSamples:
    """An answer with several `samples`, of which notebooks show the epitopes."""

    samples: Any

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{table_html(self.epitopes)}"

    @property
    def hits(self) -> pa.Table:
        """The hits of all samples, with the names of the samples in the column `sample`."""
        return self._tables("hits")

    @property
    def epitopes(self) -> pa.Table:
        """The epitopes of all samples, likewise."""
        return self._tables("epitopes")

    def _tables(self, name: str) -> pa.Table:
        tables = []
        for sample in self.samples:
            table = getattr(sample, name)
            tables.append(table.add_column(0, "sample", pa.array([sample.name] * len(table), pa.string())))
        return pa.concat_tables(tables, promote_options="default")


@dataclass(frozen=True)
class Annotation(WithSamples):
    """The hits and epitopes of samples.

    samples   one for each table or repertoire
    database  the sequences of its records that take part
    members   how many sequences are near them
    selected  whether the model's selection factor takes part
    lacks_factor  whether the model has a selection factor that needs J genes, which are not compared
    fit       how the model fits the tables
    """

    samples: list[SampleAnnotation]
    database: Centres
    members: int
    selected: bool
    lacks_factor: bool = False
    fit: ModelFit = UNCHECKED

    def __repr__(self) -> str:
        """How many samples, hits and records there are."""
        hits = f"{len(self.hits):,} hits of {self.database.used:,} records"
        return f"<Annotation of {len(self.samples):,} samples: {hits}>"


@dataclass(frozen=True)
class AnnotationQuestion(Question[Annotation]):
    """Which clonotypes are like receptors of known specificity, and how many of these recombination makes by chance.

    records  the database
    of       which records take part
    choice   which junctions of the samples take part
    ready    the union of the records and its probabilities, if they are known
    """

    records: Records
    of: DatabaseSettings
    settings: AnnotationSettings
    choice: ClonotypeChoice
    ready: Prepared | None = None
    _centres: list[Centres | None] = field(default_factory=list, init=False, repr=False)
    """The records that take part, on root, after `require_of`."""

    command = "annotate"

    @property
    def genes(self) -> Genes:  # type: ignore[override]
        return self.settings.genes

    def identity(self) -> Mapping[str, Any]:
        settings = {name: value for name, value in asdict(self.settings).items() if name != "cache"}
        return {"database": self.records.sha256, **asdict(self.of), **settings, **asdict(self.choice)}

    def require_of(self, model: Model) -> None:
        if self.ready is None:
            self._centres.append(centres_to_prepare(self.records, self.of, self.settings, model))

    def answer(self, rows: Rows, model: Model, run: Run) -> Annotation | None:
        run.bind(self.settings.backend, strict=self.settings.strict_binding)
        centres = self._centres[0] if self._centres else None
        union, p = self.ready or prepared(self.records, self.of, self.settings, model, run, centres)
        nucleotides = run.from_root(lambda: rows.on_root is not None and has_nucleotides(rows.on_root.whole.repertoire))
        chance = Chance(model, DRAWN, self.settings.seed, self.settings.backend, self.settings.strict_binding)
        selects = self.settings.selects
        depth = depth_of(model, nucleotides=nucleotides, selection=selects, genes=self.genes, chance=chance, run=run)

        def annotated(union: Union, p: Probabilities, depth: Depth, dealt: Dealt) -> Annotation:
            if dealt.whole.reads is None:
                self.choice.require_reads(rows.inputs.lacking_reads)
            samples, rows_of, refused = [], list[dict[str, Any]](), list[InputError]()
            for name, junctions in _samples_in(dealt):
                distinct = distinct_junctions(junctions, errors=self.choice.likely_errors)
                try:
                    with naming(name):
                        clonotypes = distinct.clonotypes(self.choice.min_reads)
                except InputError as error:
                    # The other samples are annotated nevertheless.
                    refused.append(error)
                    continue
                samples.append(sample_of(name, clonotypes, union, depth, model))
                rows_of.append({"left_out": clonotypes.left_out, "junctions": int(clonotypes.variants.sum())})
            if not samples:
                raise refused[0]
            for failure in refused:
                log.warning("%s; it is left out", failure)
            tested = annotate(samples, union, p, model, self.settings, rows.fit)
            done = [replace(sample, **numbers) for sample, numbers in zip(tested, rows_of, strict=True)]
            lacks_factor = model.selection is not None and self.settings.selection and not self.settings.selects
            return Annotation(done, union.centres, len(union), p.selected, lacks_factor, rows.fit)

        return run.root_steps(annotated, NOTHING_YET, union, p, depth, rows.on_root)

    def facts(self, answer: Annotation, rows: Rows) -> Facts:
        """The facts of all samples, as docs/annotate.md describes them; `sample_facts` has those of one sample."""
        return {
            "database": {**self.records.recorded, "records_used": answer.database.used,
                         "left_out": answer.database.left_out, "sequences": len(answer.database.kind),
                         "epitopes": len(answer.database.epitopes), "members": answer.members},
            "records": asdict(self.of),
            "choice": asdict(self.choice),
            "selection_factor": answer.selected,
            "rows_read": rows.tally.rows_read,
            "rows_excluded": counts_json(rows.tally.excluded),
            "samples": [sample.name for sample in answer.samples],
        }  # fmt: skip

    def warnings(self, answer: Annotation) -> list[str]:
        samples_of: dict[str, list[str]] = {}
        for sample in answer.samples:
            for text in self._warnings_of(sample):
                samples_of.setdefault(text, []).append(sample.name)
        lines = [f"{few(names)}: {text}" for text, names in samples_of.items()]
        if several := sum(sample.several for sample in answer.samples):
            lines.append(
                f"{several:,} of {sum(sample.clonotypes for sample in answer.samples):,} clonotypes name several V or "
                f"several J genes, as no record does, and are no hits; {option('ties', 'auto')}, unless given, takes V "
                f"genes together that reads hardly tell apart, and {option('match', 'none')} does not read calls"
            )
        if answer.lacks_factor and self.settings.kappa is not None:
            lines.append(
                f"without J genes the model's selection factor is left out, so {option('kappa')} must contain its "
                f"mean: leave it out, or give the kappa of another sample with {option('match', self.settings.match)}"
            )
        return lines

    def _warnings_of(self, sample: SampleAnnotation) -> Iterator[str]:
        """The warnings of a sample, in words that are equal for all samples with the same problem."""
        source = sample.kappa.source
        if sample.passed is False:
            yield (
                f"{sample.decoys['called']:g} epitopes and {sample.decoys['hits_called']:g} hits of decoys would be "
                "called, so nothing is; choose decoys that the donor cannot have met, leave out likely errors, use a "
                f"model of this protocol, or give {option('kappa')}"
            )
        elif sample.decoys and source not in ("decoys", "given", *NO_KAPPA):
            yield f"decoys have too few hits to tell kappa; it is that of all {source}"
        for name, test in sample.kappa_by.items():
            if test.p_value < DIFFERS and source not in NO_KAPPA:
                yield (
                    f"kappa differs by {name} (p = {test.p_value:.1g}), so hits of some are more common than expected: "
                    "found_and_expected_by in the facts has their numbers"
                )
        if source == "none":
            yield (
                f"{NO_KAPPA[source]}; expected numbers are those with kappa 1, and in most people it is larger; give "
                f"more samples, or {option('kappa')}"
            )
        if source == "bound":
            yield f"{NO_KAPPA[source]} {option('kappa')} sets it"
        if sample.of_the_others is not None:
            given = option("kappa", round(sample.of_the_others.kappa, 2))
            yield (
                f"hits are far more common than in the other samples (p = {sample.of_the_others.p_value:.1g}), and "
                f"kappa is fitted to them, which hides them; {given}, that of the others, tests them"
            )
        elif source == "records":
            more = "more decoys" if sample.decoys else option("decoys")
            yield (
                f"kappa is that of all records, which hides what they have in common; give {more}, or "
                f"{option('kappa')} as a larger database tells it"
            )

    def summary(self, answer: Annotation) -> Lines:
        database = answer.database
        lines = [
            ("database", f"{database.used:,} records of {len(database.epitopes):,} epitopes, {answer.members:,} "
             f"sequences within {self.settings.mismatches} exchange(s)"),
            *(("", f"{number:,} left out: {reason}") for reason, number in database.left_out.items()),
        ]  # fmt: skip
        shown = sorted(answer.samples, key=lambda sample: -sum(sample.called))[:MOST_SHOWN]
        lines += [line for sample in shown for line in _sample_lines(sample)]
        more = len(answer.samples) - len(shown)
        return [*lines, ("", f"and {more:,} more samples, in which no more is called")] if more else lines


MOST_SHOWN = 10
"""The largest number of samples that have lines of their own in the summary."""

KAPPA_IS = {
    "given": "as given", "decoys": "from decoys", "epitopes": "from epitopes", "samples": "from other samples",
    "records": "from all records", "none": "as it is not known", "bound": "the largest that is tried",
}  # fmt: skip
"""Where κ comes from, in words, by its source."""


def _sample_lines(sample: SampleAnnotation) -> Lines:
    kappa = sample.kappa
    sure = f" ({kappa.low:.2f} to {kappa.high:.2f})" if kappa.low is not None and kappa.high is not None else ""
    lines = [
        (sample.name, f"{hits_text(sample.found, sample.expected, kappa.source)}; kappa {kappa.value:.2f}{sure}, "
         f"{KAPPA_IS[kappa.source]}, dispersion {sample.dispersion:.2f}"),
    ]  # fmt: skip
    if sample.passed is False:
        return [*lines, ("", "the decoys fail, so nothing is called")]
    if kappa.source in NO_KAPPA:
        return [*lines, ("", NO_KAPPA[kappa.source])]
    called, decoys = sample.called, sample.decoys
    of_decoys = ""
    if decoys and (decoys["called"] or decoys["hits_called"]):
        of_decoys = f", of them of decoys {decoys['called']:,} and {decoys['hits_called']:,}"
    return [*lines, ("", f"called: {called[0]:,} epitope(s), {called[1]:,} hit(s){of_decoys}")]


def _samples_in(dealt: Dealt) -> list[tuple[str, Part]]:
    """The name and the rows of each sample."""
    whole = dealt.whole
    if ends_open(whole.repertoire):
        raise InputError("cdr3_aa: a junction_aa, with Cys 104 and Phe/Trp 118, is needed; give tables that have it")
    return [(name, whole.only(np.flatnonzero(whole.sample == number))) for number, name in enumerate(dealt.samples)]


def sample_facts(sample: SampleAnnotation) -> Facts:
    """The facts of one sample."""
    return {
        "sample": sample.name, "clonotypes": sample.clonotypes, "clonotypes_of_other_genes": sample.others,
        "clonotypes_of_several_genes": sample.several,
        "rows_left_out": dict(sample.left_out), "junctions": sample.junctions,
        "not_tested": dict(sample.not_tested), "found": sample.found, "expected": sample.expected,
        "epitopes_called": sample.called[0], "hits_called": sample.called[1],
        "tested": len(sample.epitopes), "kappa": asdict(sample.kappa),
        "kappa_of_epitopes": asdict(sample.kappa_of_epitopes) if sample.kappa_of_epitopes else None,
        "dispersion": sample.dispersion, "decoys": dict(sample.decoys), "decoys_passed": sample.passed,
        "qq": dict(sample.qq), "found_and_expected_by": dict(sample.by),
        "kappa_by": {name: asdict(difference) for name, difference in sample.kappa_by.items()},
        "of_the_others": asdict(sample.of_the_others) if sample.of_the_others is not None else None,
    }  # fmt: skip


@dataclass(frozen=True)
class AnnotationOutput(AnswerOutput[Annotation]):
    """A folder with the epitopes, the facts and the hits of each sample."""

    target: Path
    overwrite: bool = False
    resume: bool = False

    def begin(self, stack: ExitStack, files: Sequence[Path], run: Run, identity: Callable[[], Identity]) -> None:
        assert run.target is not None
        stack.enter_context(exclusive_folder(run.target, *files, overwrite=run.overwrite, resume=run.resume))
        if run.resume and run.target.exists():
            self._require_unfinished(run, identity())

    @staticmethod
    def _require_unfinished(run: Run, identity: Identity) -> None:
        """Raise CompleteError if the folder is of this run, and InputError if it is of another and must be kept."""
        target = run.target
        assert target is not None
        facts = next((read_facts(path) for path in sorted(target.glob(f"*{EPITOPES}"))), None) or {}
        theirs, ours = (
            {**values, "tables": sorted(map(tuple, values.get("tables", [])))}
            for values in (facts.get("identity") or {}, identity)
        )
        if not is_of_another_run(target, theirs, ours, replace=run.overwrite):
            require_unchanged_folder(target)
            raise complete(target)

    def require(self, rows: Rows) -> None:
        samples: dict[str, str] = {}
        for name in rows.inputs.repertoires:
            other = samples.setdefault(_file_name(name), name)
            if other != name:
                raise InputError(f"samples {other} and {name}: both would be {_file_name(name)}{EPITOPES}; rename one")

    def write(self, question: Question[Annotation], answer: Annotation, rows: Rows, facts: Facts, run: Run) -> None:
        assert run.target is not None
        with atomic_folder(run.target, overwrite=run.overwrite) as folder:
            for sample in answer.samples:
                hits, epitopes = (folder / f"{_file_name(sample.name)}{ending}" for ending in (HITS, EPITOPES))
                tables = {epitopes: sample.epitopes, hits: sample.hits}
                clones = {key: value for key, value in facts["clones"].items() if key == sample.name}
                described = {**facts, **sample_facts(sample), "clones": clones}
                Targets(epitopes, (hits,)).write(described, tables, overwrite=False)


def _file_name(sample: str) -> str:
    return sample.replace("/", "_")
