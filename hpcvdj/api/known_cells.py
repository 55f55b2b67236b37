"""Find cells like receptors of known specificity: `hpcvdj.annotate_cells` with a database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hpcvdj.annotation.annotate import SampleAnnotation
from hpcvdj.annotation.cache import prepared
from hpcvdj.annotation.judged import Judged
from hpcvdj.annotation.pairs import Chains, PairedAnnotation, annotate_pairs, chains_of
from hpcvdj.annotation.question import Annotation, AnnotationQuestion, WithSamples
from hpcvdj.annotation.settings import AnnotationSettings
from hpcvdj.api.individuals import answered, given_tables
from hpcvdj.api.specificity import annotate, asked_of
from hpcvdj.api.tables import used_model
from hpcvdj.errors import InputError
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.genes import amino_acids, by_gene, kinds_of
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.repertoires.junctions import Junctions
from hpcvdj.repertoires.reading import productive_reading
from hpcvdj.repertoires.sequence_fields import common_fields
from hpcvdj.reports.outputs import hits_text
from hpcvdj.runs.run import Run

COLUMNS = ("epitope", "record", "expected", "fdr")
"""The columns of hits that cells get."""

NOT_LIKE = "not like a record"

LEFT_OUT = "fewer reads than min_reads, or a likely error"


@dataclass(frozen=True)
class CellAnnotation(WithSamples):
    """Cells that are like receptors of known specificity.

    chains  annotation of `VDJ` and `VJ` chains by themselves, as `hpcvdj.annotate` returns it
    pairs   annotation of cells with both chains; None with a single model

    `samples` has κ, dispersion and the check by decoys of each chain, named `VDJ` or `VJ`.  `hits` and `epitopes` are
    the tables of `hpcvdj.annotate` for both chains.
    """

    chains: Mapping[str, Annotation]
    pairs: PairedAnnotation | None

    @property
    def samples(self) -> list[SampleAnnotation]:  # type: ignore[override]
        return [replace(sample, name=kind) for kind, answer in self.chains.items() for sample in answer.samples]

    def __repr__(self) -> str:
        """Return the number of hits and κ of each chain, and the number of pairs."""
        texts = [
            f"{sample.name} {hits_text(sample.found, sample.expected, sample.kappa.source)} (κ "
            f"{sample.kappa.value:.2f} by {sample.kappa.source})"
            for sample in self.samples
        ]
        if self.pairs is not None:
            texts.append(f"{len(self.pairs.hits):,} hits among {self.pairs.trials:,} pairs")
        return f"<CellAnnotation: {'; '.join(texts)}>"


def annotated_cells(
    obs: Any,
    tables: Mapping[str, Any],
    models: Mapping[str, Model | str | Path],
    database: Any,
    options: dict[str, Any],
) -> CellAnnotation:
    """Annotate the primary chains of cells, and add columns to `obs`.

    tables  pandas tables of the `VDJ` and `VJ` chains, with an index of cells
    """
    if not models:
        raise InputError("no model; give model= of the VDJ chains, vj_model= of the VJ chains, or both")
    # This raises a TypeError for options that `hpcvdj.annotate` does not have.
    bound = signature(annotate).bind(None, database, None, **options)
    # Errors are made in a cell, so a junction of few molecules is none of the many molecules of other cells.
    bound.arguments.setdefault("likely_errors", True)
    bound.apply_defaults()
    records, of, settings, choice, checks = asked_of(database, bound.arguments)
    answers, chains, judged, found = {}, {}, {}, {}
    run = Run()
    run.bind(settings.backend, strict=settings.strict_binding)
    for kind, named in models.items():
        given = used_model(named)
        table = tables[kind].drop(columns="sequence_id", errors="ignore").fillna("").astype(str)
        model = checks.adapted(given, settings.genes)
        union, p = prepared(records, of, settings, model, run)
        assert union is not None
        assert p is not None
        question = AnnotationQuestion(records, of, settings, choice, (union, p))
        rows = pa.Table.from_pandas(table, preserve_index=False)
        chosen = given_tables({kind: rows})
        answers[kind] = answered(question, chosen, given, checks)
        judged[kind] = Judged.by(answers[kind].fit, union, p, model, settings)
        junctions = read_table(rows, model, productive_reading(common_fields(chosen), genes=settings.genes, reads=True))
        of_hit = _of_hits(answers[kind], junctions, len(table), model, settings)
        of_rows = chains_of(junctions, len(table), model, union, choice)
        why = np.where(of_rows.junction < 0, LEFT_OUT, NOT_LIKE).astype(object)
        why[junctions.excluded.row] = junctions.excluded.messages
        reasons = _on(obs, table, why, f"no primary {kind} chain")
        found[f"{kind}_1_"] = answers[kind].hits, _on(obs, table, of_hit), reasons
        chains[kind] = Chains(*(_on(obs, table, values) for values in (of_rows.junction, of_rows.kind, of_rows.member)))
    pairs = None
    if len(models) == 2:
        pairs = annotate_pairs((chains["VDJ"], chains["VJ"]), (judged["VDJ"], judged["VJ"]), records, settings)
        why = np.where(pairs.both, NOT_LIKE, "not both chains with a value").astype(object)
        found["pair_"] = pairs.hits, pairs.hit_of, why
    # Pairs of an earlier call were of its chains.
    without_earlier(obs, [prefix + name for prefix in {**found, "pair_": None} for name in COLUMNS])
    for prefix, columns in found.items():
        _add(obs, prefix, *columns)
    return CellAnnotation(answers, pairs)


def without_earlier(obs: Any, beginnings: Sequence[str]) -> None:
    """Remove the columns of an earlier call, whose names have these `beginnings`, from `obs`."""
    for name in [name for name in obs if str(name).startswith(tuple(beginnings))]:
        del obs[name]


def _of_hits(
    answer: Annotation, junctions: Junctions, rows: int, model: Model, settings: AnnotationSettings
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the hit of each row, int64 [rows]; -1 for none."""
    repertoire, order = by_gene(junctions.repertoire, model)
    letters, lengths = amino_acids(repertoire, np.arange(len(repertoire)))
    hits = [answer.hits[name].to_pylist() for name in ("v_call", "j_call", "junction_aa")]
    numbers = {key: number for number, key in enumerate(zip(*hits, strict=True))}
    used = {"vj": (True, True), "v": (True, False), "none": (False, False)}[settings.match]
    names = [
        [segment.allele if is_used else None for segment, is_used in zip(pair, used, strict=True)]
        for pair in repertoire.pairs
    ]
    hit_of = np.full(rows, -1, dtype=np.int64)
    for row, kind, text, length in zip(
        junctions.row[order].tolist(), kinds_of(repertoire).tolist(), letters, lengths, strict=True
    ):
        hit_of[row] = numbers.get((*names[kind], bytes(text[:length]).decode()), -1)
    return hit_of


def _on(obs: Any, table: Any, values: Any, other: Any = -1) -> Any:
    """Return values of the rows of a table for all cells; cells without a row get `other`."""
    every = np.full(len(obs), other, dtype=np.asarray(values).dtype)
    every[obs.index.get_indexer(table.index)] = values
    return every


def _add(obs: Any, prefix: str, hits: pa.Table, hit: Any, why: Any) -> None:
    """Add the columns of hits to `obs`.

    hit  int64 [cells]: the hit of each cell; -1 for none
    why  why a cell has no hit
    """
    import pandas as pd

    has = hit >= 0
    for name in COLUMNS:
        column = pd.Series([None] * len(obs), index=obs.index, dtype=object)
        column[has] = hits[name].take(pa.array(hit[has])).to_pylist()
        # Of other types, AnnData saves none, or none without any value.
        obs[prefix + name] = column.astype(float if name in ("expected", "fdr") else "category")
    obs[prefix + "epitope_excluded"] = np.where(has, "", why)
