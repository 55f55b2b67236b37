"""`hpcvdj enrich` as a question: it reads a table and a control, tests the clonotypes, and describes the answer."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hpcvdj.chance.check import check_tables
from hpcvdj.chance.clone_sizes import CloneSizes, sizes_in
from hpcvdj.chance.clonotypes import DistinctJunctions, distinct_junctions
from hpcvdj.chance.dealing import Dealt
from hpcvdj.chance.question import Lines, Question, Rows
from hpcvdj.chance.settings import Checks, ClonotypeChoice
from hpcvdj.enrichment.enrich import Enrichment, ReadOnce, enrich, enrich_over
from hpcvdj.enrichment.settings import EnrichmentSettings
from hpcvdj.errors import InputError, few, log, option
from hpcvdj.kernels.backends import Backend, import_backend_ahead
from hpcvdj.recombination.calls import Genes
from hpcvdj.recombination.exclusions import counts_json
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.genes import has_nucleotides
from hpcvdj.repertoires.inputs import Inputs, together_of
from hpcvdj.repertoires.table import Table
from hpcvdj.results.facts import Facts
from hpcvdj.runs.inputs import surveyed
from hpcvdj.runs.run import Run
from hpcvdj.storage.ahead import import_ahead

NO_SELECTION = 100
"""An estimated κ above which something else than selection makes neighbours."""

FAR_ABOVE = 10
"""Users hear of a length whose κ is more than this many times the common κ."""


@dataclass(frozen=True)
class EnrichmentQuestion(Question[Enrichment]):
    """Which clonotypes of an individual have more neighbours than chance explains.

    choice   which junctions take part
    control  tables of other people, whose neighbours are taken for chance; without them, the model says what chance
             makes
    """

    settings: EnrichmentSettings
    choice: ClonotypeChoice
    control: Sequence[Table] = ()

    command = "enrich"
    shares_rows = True

    @property
    def genes(self) -> Genes:  # type: ignore[override]
        return self.settings.genes

    @property
    def further_tables(self) -> Sequence[Table]:
        return self.control

    def require(self, inputs: Inputs) -> None:
        if self.control and self.settings.kappa is not None:
            raise InputError(
                f"{option('kappa', self.settings.kappa)}: a control has the selection of its people, so there is no "
                f"kappa; leave it out, or {option('control')}"
            )
        if len(inputs.repertoires) > 1:
            repertoires = f"{len(inputs.repertoires):,} repertoires ({few(inputs.repertoires)})"
            raise InputError(
                f"{inputs.tables[0].path}: has {repertoires}; neighbours are those of one individual, so give each its "
                "own table"
            )

    def answer(self, rows: Rows, model: Model, run: Run) -> Enrichment | None:
        import_ahead("scipy.optimize")
        import_backend_ahead(self.settings.backend)
        dealt = rows.dealt(model, run, "block")
        sizes, samples = sizes_in(dealt), self._distinct(dealt, rows.inputs.lacking_reads, run)
        control = self._control(rows.inputs, run)
        if control is not None:
            named = f", {control.names}," if control.names else ""
            log.info("the control%s is compared with the model, too", named)
            checks = Checks(force=rows.fit.force, keep_misfits=rows.fit.keep_misfits)
            fit = run.from_root(lambda: check_tables(checks, [control], model, run=run))
            of_control = Rows(control, None, fit).dealt(model, run, "block")
            samples += self._distinct(of_control, f"the control, {control.lacking_reads}", run)
        # Ranks may share a GPU, since most of the work is done on the CPU.
        backend = run.bind(self.settings.backend, strict=self.settings.strict_binding, sharing_pays=True)
        test = partial(self._test, samples, rows, model, run, backend)
        answer, once, hits = test(self.choice.min_reads), 0, None
        if self.choice.min_reads == 1 and all(sample.reads is not None for sample in samples):
            once = samples[0].read_once()
        if once:
            try:
                others = test(2)
                hits = others.hits if others is not None else None
            except InputError as error:
                log.debug("of two reads or more: %s", error)
        if answer is None or dealt.tally is None:
            return None
        tally = dealt.tally
        return replace(
            answer,
            control=control.recorded if control is not None and not control.in_memory else [],
            read_once=ReadOnce(once, hits) if once else None,
            rows_read=tally.rows_read,
            excluded=tally.rows_read - tally.counted,
            clones=sizes,
            tally=tally,
        )

    def _control(self, inputs: Inputs, run: Run) -> Inputs | None:
        if not self.control:
            return None
        control = surveyed(run.from_root(lambda: together_of(self.control, inputs.reading)), run)

        def require_others() -> None:
            same = [table for table in control.tables if not {*inputs.repertoires}.isdisjoint(table.repertoires)]
            if same and not (control.in_memory and inputs.in_memory):
                raise InputError(f"{same[0].path}: has the individual that is tested; give a control of other people")

        run.on_root(require_others)
        return control

    def _distinct(self, dealt: Dealt, lacking: str, run: Run) -> list[DistinctJunctions]:
        """The distinct ones of this rank's junctions, of one individual after the other.

        lacking  why reads are not known, if they are not
        """
        junctions = dealt.whole
        unknown = junctions.reads is None and len(dealt.example) > 0
        if unknown:
            self.choice.require_reads(lacking)

        def tell() -> None:
            if not self.choice.likely_errors and not has_nucleotides(junctions.repertoire):
                log.warning("amino acids only: likely sequencing errors cannot be told, and take part")
            elif unknown and not self.choice.likely_errors:
                log.warning("%s; likely sequencing errors cannot be told, and take part", lacking)

        run.on_root(tell)
        people = [junctions]
        if len(dealt.samples) > 1:
            people = [junctions.only(np.flatnonzero(junctions.sample == k)) for k in range(len(dealt.samples))]
        return [distinct_junctions(part, errors=self.choice.likely_errors, run=run) for part in people]

    def _test(
        self, samples: Sequence[DistinctJunctions], rows: Rows, model: Model, run: Run, backend: Backend, min_reads: int
    ) -> Enrichment | None:
        """Test the junctions that have at least `min_reads` reads; root returns the answer, other ranks None.

        samples  the individual that is tested, and those of the control
        """
        tested, *controls = (sample.clonotypes(min_reads) for sample in samples)
        if self.control:
            answer = enrich_over(tested, controls, self.settings, run, backend)
        else:
            answer = enrich(tested, model, self.settings, run, backend, rows.fit)
        junctions = int(run.sum(np.array([tested.variants.sum()]))[0])
        return answer and replace(answer, left_out=tested.left_out, junctions=junctions)

    def identity(self) -> Mapping[str, Any]:
        return {**asdict(self.settings), **asdict(self.choice)}

    def facts(self, answer: Enrichment, rows: Rows) -> Facts:
        """docs/enrich.md describes them."""
        estimate, tally = answer.estimate, answer.tally
        assert tally is not None
        return {
            "control": answer.control,
            "choice": asdict(self.choice),
            "rows_read": answer.rows_read,
            "rows_excluded": counts_json(tally.excluded),
            "rows_left_out": answer.left_out,
            "junctions": answer.junctions,
            "clonotypes": answer.clonotypes,
            "tested": answer.table.num_rows,
            "not_tested": answer.not_tested,
            "kappa": answer.kappa,
            "kappa_interval": [estimate.low, estimate.high] if estimate is not None else None,
            "kappa_by_length": answer.by_length,
            "qq": answer.qq,
            "hits": answer.hits,
            "clusters": answer.clusters,
            "not_available": answer.not_available,
            "read_once": asdict(answer.read_once) if answer.read_once is not None else None,
        }

    def clones(self, answer: Enrichment, rows: Rows, model: Model) -> Mapping[str, CloneSizes]:
        return answer.clones

    def warnings(self, answer: Enrichment) -> list[str]:
        if answer.kappa is None or answer.kappa <= NO_SELECTION or _is_bound(answer) or self.settings.kappa is not None:
            return []
        return [
            f"kappa is {answer.kappa:,.0f}: selection does not make neighbours so common; families of mutated B cells, "
            f"cells sorted by one antigen, or misread sequences do. Leave such rows out, or give {option('kappa')}"
        ]

    def line(self, answer: Enrichment) -> str:
        """The line that the command prints for one table of several."""
        bound = " at most" if _is_bound(answer) else ""
        kappa = f", kappa {answer.kappa:.2f}{bound}" if answer.kappa is not None else ""
        clusters = f"{answer.hits:,} hits in {answer.clusters:,} cluster(s)"
        if not answer.table.num_rows:
            clusters = "of which none has enough neighbours"
        # What is said of amino acids is said of the first of several tables only.
        rows = f"{answer.rows_read:,} rows{' of amino acids' if answer.not_available else ''}"
        return f"{rows}, {answer.clonotypes:,} clonotypes{kappa}, {clusters}"

    def summary(self, answer: Enrichment) -> Lines:
        left_out = "".join(f", {number:,} {reason}" for reason, number in answer.left_out.items() if number)
        tested = f"{answer.table.num_rows:,} have enough neighbours to be tested"
        lines = [
            ("rows", f"{answer.rows_read:,} read, {answer.excluded:,} excluded{left_out}"),
            ("clonotypes", f"{answer.clonotypes:,}, of which {tested}"),
        ]
        lines += [
            ("", f"{number:,} more are not tested: {reason}") for reason, number in answer.not_tested.items() if number
        ]
        if answer.not_available:
            lines.append(("not known", f"for want of nucleotides: {', '.join(answer.not_available)}"))
        lines += _kappa_lines(answer)
        lines.append(("hits", f"{answer.hits:,} with q <= {self.settings.max_q:g}, in {answer.clusters:,} cluster(s)"))
        return lines + [("", line) for line in read_once_lines(answer)]


def _is_bound(answer: Enrichment) -> bool:
    """Whether kappa is only an upper bound, as too few clonotypes have neighbours."""
    return answer.estimate is not None and not answer.estimate.low


def _kappa_lines(answer: Enrichment) -> Lines:
    if answer.kappa is None:
        return []
    lengths = "".join(f", {length}: {kappa:.2f}" for length, kappa in answer.by_length.items())
    estimate = answer.estimate
    interval = f" (95 % interval {estimate.low:.2f} to {estimate.high:.2f})" if estimate is not None else ""
    if _is_bound(answer):
        interval = " at most; too few clonotypes have neighbours to say more"
    by_length = f"; by residues of the junction{lengths[1:]}" if lengths else ""
    lines = [("kappa", f"{answer.kappa:.2f}{interval}{by_length}")]
    if far := [str(length) for length, kappa in answer.by_length.items() if kappa > FAR_ABOVE * answer.kappa]:
        lines.append((
            "",
            f"that of {', '.join(far)} residues is more than {FAR_ABOVE} times as large, which selection hardly "
            f"explains: it may be of misread sequences ({option('min_reads', 2)}), or of true clusters, some of which "
            "it hides",
        ))  # fmt: skip
    return lines


def read_once_lines(answer: Enrichment) -> list[str]:
    """The lines that tell users that most of their junctions have one read; none without hits, as these might be."""
    once = answer.read_once
    if once is None or not (answer.hits or once.hits_without):
        return []
    text = f"most junctions ({once.junctions:,} of {answer.junctions:,}) have one read, as many sequencing errors do"
    if once.hits_without is None:
        return [f"{text}; the others alone ({option('min_reads', 2)}) cannot be tested"]
    return [f"{text}; consider {option('min_reads', 2)}, with which there are {once.hits_without:,} hits"]
