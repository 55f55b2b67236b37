"""The numbers of a report, from one pass over a result in blocks: memory does not grow with the rows.

Counts and sums are exact; `hpcvdj.reports.bins` says how exact quantiles and medians are.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.counting.config import PgenConfig
from hpcvdj.counting.tables import values_of_table
from hpcvdj.kernels.quantities import Pgen
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import LONGEST_CDR3
from hpcvdj.reports.bins import FINE_BINS, Quantiles, Scores, log_bins
from hpcvdj.results.reader import Result
from hpcvdj.results.schema import read_group, strings
from hpcvdj.storage.opening import damage

BLOCK_BYTES = 1 << 25
"""Bytes of counters and sequences read at a time."""

TOP = 100
"""Junctions in the list of those with the largest score."""


@dataclass(eq=False)
class Junction:
    """A distinct junction: its alleles and CDR3, its first row, how many rows have it, its pathways by n-length.

    weight  that of `hpcvdj.kernels.quantities.Pathways`
    score   what junctions are ranked by: the weight or, with a model, the generation probability (NaN if it has none)
    """

    v_call: str
    j_call: str
    cdr3: str
    counters: NDArray[np.uint64]
    weight: float
    score: float
    row: int
    rows: int = 0
    sequence_id: str = ""

    @property
    def pathways(self) -> int:
        return sum(self.counters.tolist())

    @property
    def amino_acids(self) -> str:
        """The amino acids of the CDR3, or why there are none."""
        return "out of frame" if len(self.cdr3) % 3 else translate([self.cdr3])[0] or "(empty)"


class Survey:
    """All that a report shows of one result.

    counted       junctions; `rows_read` are the rows of the input
    facts         the attributes of the result file; `config` are those that say how it was counted
    by_n          list of int [N + 1]: pathways of each n-length, over all junctions; `pathways` is their sum
    reached       int64 [N + 1]: junctions that need m n-nucleotides; `with_pathway` is their sum
    bins_by_n     fine histograms of pathways per junction by n-length, int64 [N + 1, FINE_BINS]
    bins_by_size  likewise, of all n-lengths together, by CDR3 length in nt, int64 [LONGEST_CDR3 + 1, FINE_BINS];
                  `sizes` are the junctions of each length
    quantiles     of pathways per junction, all n-lengths together; `most` is the largest number
    scores        the weights of junctions or, with a model, their generation probabilities
    unscored      why junctions have no generation probability, and how many
    pairs         {(V gene, J gene): [junctions, pathways]}; `allele_pairs` is how many pairs of alleles there are
    top           the junctions with the largest score
    shown         (which it is, junction) of those whose pathways are drawn
    excluded      the reasons of excluded rows, and the rows of each
    repertoires   sequences of each repertoire, if tables were counted together
    ranks         facts of each rank
    timings       seconds of each unit of work
    """

    def __init__(self, result: Result, name: str, junction: str | None, model: Model | None) -> None:
        quantity, columns = result.pathways(), result.max_n + 1
        self._totals, self._weights = quantity.totals, quantity.weights
        self._result, self._pairs, self.model = result, result.pairs, model
        self._stops = np.array([rows.stop for _, _, rows in self._pairs], dtype=np.int64)
        self._top: dict[tuple[str, str, bytes], Junction] = {}
        self.name, self.path, self.max_n, self.counted = name, result.path, result.max_n, len(result)
        self.facts = result.provenance
        self.config: dict[str, Any] = json.loads(self.facts.get("config", "{}"))
        self.by_n, self.most, self.quantiles, self.scores = [0] * columns, 0, Quantiles(), Scores()
        self.unscored = Counter[str]()
        self.reached = np.zeros(columns, np.int64)
        self.bins_by_n = np.zeros((columns, FINE_BINS), np.int64)
        self.bins_by_size = np.zeros((LONGEST_CDR3 + 1, FINE_BINS), np.int64)
        self.pairs: dict[tuple[str, str], list[int]] = {}
        for rows in self._blocks():
            self._add(rows)
        self.pathways, self.with_pathway = sum(self.by_n), int(self.reached.sum())
        self.sizes: NDArray[np.int64] = self.bins_by_size.sum(axis=1)
        self.allele_pairs = len({(v, j) for v, j, rows in self._pairs if rows.stop > rows.start})
        self.top = list(self._top.values())
        for listed in self.top:
            listed.sequence_id = self._name_of(listed.row)
        self.shown = self._shown(junction)
        self.repertoires = result.repertoires if result.together else {}
        self.excluded = result.excluded_counts
        self.rows_read = self.counted + sum(rows for _, rows in self.excluded)
        ranks = {key: strings(values) for key, values in read_group(result.dataset("/"), "ranks").items()}
        self.ranks = [dict(zip(ranks, values, strict=True)) for values in zip(*ranks.values(), strict=True)]
        self.timings = read_group(result.dataset("/"), "timings")

    def share(self, junctions: int) -> float:
        """Junctions in percent of all."""
        return 100 * junctions / max(1, self.counted)

    def _blocks(self) -> Iterator[slice]:
        width = 8 * len(self.by_n) + self._result.dataset("sequences/cdr3").dtype.itemsize
        step = max(1, BLOCK_BYTES // width)
        for first in range(0, self.counted, step):
            yield slice(first, min(self.counted, first + step))

    def _add(self, rows: slice) -> None:
        counters = np.asarray(self._result.counters[rows])
        totals = self._totals(counters)
        cdr3 = np.ascontiguousarray(self._result.dataset("sequences/cdr3")[rows])
        # The sums of the halves of counters fit into 64 bits; the sums of counters may not.
        low, high = (counters & np.uint64(2**32 - 1)).sum(axis=0), (counters >> np.uint64(32)).sum(axis=0)
        self.by_n = [n + int(a) + (int(b) << 32) for n, a, b in zip(self.by_n, low, high, strict=True)]
        nonzero = counters > 0
        self.reached += np.bincount(nonzero.argmax(axis=1)[nonzero.any(axis=1)], minlength=len(self.by_n))
        sizes = np.count_nonzero(cdr3.view(np.uint8).reshape(len(cdr3), -1), axis=1)
        by_n, by_size = np.arange(len(self.by_n)) * FINE_BINS + log_bins(counters), sizes * FINE_BINS + log_bins(totals)
        for histogram, bins in ((self.bins_by_n, by_n), (self.bins_by_size, by_size)):
            histogram += np.bincount(bins.reshape(-1), minlength=histogram.size).reshape(histogram.shape)
        self.quantiles.add(totals)
        self.most = max(self.most, int(totals.max()))
        pair = self._pairs_of(rows)
        self._add_pairs(pair, totals)
        scored, reasons = self._scored(rows, counters)
        self.scores.add(scored)
        self.unscored.update(filter(None, reasons))
        self._add_top(rows.start, pair, cdr3, counters, scored)

    def _pairs_of(self, rows: slice) -> NDArray[np.int64]:
        """The V–J pair of each row, int64 [rows]."""
        return np.searchsorted(self._stops, np.arange(rows.start, rows.stop), side="right")

    def _scored(self, rows: slice, counters: NDArray[np.uint64]) -> tuple[NDArray[np.float64], list[str]]:
        """The scores of rows, float64 [rows], and the reasons for those without a score, which are NaN."""
        if self.model is None:
            return self._weights(counters), []
        calls = [self._pairs[pair][:2] for pair in self._pairs_of(rows).tolist()]
        v, j = ([call[k] for call in calls] for k in (0, 1))
        cdr3 = strings(self._result.dataset("sequences/cdr3")[rows])
        table = pa.table({"v_call": v, "j_call": j, "junction": self.model.junctions(v, j, cdr3)})
        values, _ = values_of_table(table, self.model, PgenConfig(("pgen_nt",)))
        return values["pgen_nt"].to_numpy(), values[Pgen.excluded].to_pylist()

    def _add_pairs(self, pair: NDArray[np.int64], totals: NDArray[np.uint64]) -> None:
        starts = np.flatnonzero(np.diff(pair, prepend=-1))
        columns = pair[starts], np.diff(starts, append=len(pair)), np.add.reduceat(totals, starts)
        for k, junctions, pathways in zip(*(column.tolist() for column in columns), strict=True):
            v, j, _ = self._pairs[k]
            cell = self.pairs.setdefault((v.partition("*")[0], j.partition("*")[0]), [0, 0])
            cell[0] += junctions
            cell[1] += pathways

    def _add_top(
        self,
        first: int,
        pair: NDArray[np.int64],
        cdr3: NDArray[np.bytes_],
        counters: NDArray[np.uint64],
        score: NDArray[np.float64],
    ) -> None:
        """Keep the junctions with the largest score; of equal scores those of earlier rows.

        All rows of a junction have the same score and blocks come in order: what drops out of the list never returns.
        """
        least = min((junction.score for junction in self._top.values()), default=0.0) if len(self._top) == TOP else 0.0
        candidates = np.unique(score[(score > 0) & (score >= least)])
        # Junctions with different scores are different.
        chosen = score >= candidates[-TOP:][0] if len(candidates) else np.zeros(0, bool)
        for row in np.flatnonzero(chosen).tolist():
            v, j, _ = self._pairs[pair[row]]
            key = v, j, bytes(cdr3[row])
            if key not in self._top:
                weight = float(self._weights(counters[row : row + 1])[0])
                own = counters[row].copy(), weight, float(score[row])
                self._top[key] = Junction(v, j, key[2].decode(), *own, first + row)
            self._top[key].rows += 1
        ranked = sorted(self._top.items(), key=lambda item: (-item[1].score, item[1].row))
        self._top = dict(ranked[:TOP])

    def _shown(self, asked: str | None) -> list[tuple[str, Junction]]:
        """The requested junction; by default the one with the largest score, and the first with a median score."""
        ids, counters, scores = self._result.dataset("sequences/sequence_id"), self._result.counters, self.scores
        if asked is not None:
            row = self._first_row(lambda rows: ids[rows] == asked.encode())
            return [] if row is None else [("the junction asked for", self._junction(row))]
        if not self.top:
            return []
        typical = scores.typical()
        row = self._first_row(lambda rows: scores.bins(self._scored(rows, counters[rows])[0]) == typical)
        assert row is not None
        best = "the junction with the largest weight" if self.model is None else "the most probable junction"
        return [(best, self.top[0]), ("a typical junction", self._junction(row))]

    def _first_row(self, matches: Callable[[slice], NDArray[np.bool_]]) -> int | None:
        found = (rows.start + np.flatnonzero(matches(rows)) for rows in self._blocks())
        return next((int(rows[0]) for rows in found if len(rows)), None)

    def _junction(self, row: int) -> Junction:
        v, j, _ = self._pairs[int(np.searchsorted(self._stops, row, side="right"))]
        rows = slice(row, row + 1)
        counters, cdr3 = np.asarray(self._result.counters[rows]), self._result.dataset("sequences/cdr3")[row].decode()
        weight, score = float(self._weights(counters)[0]), float(self._scored(rows, counters)[0][0])
        return Junction(v, j, cdr3, counters[0], weight, score, row, 1, self._name_of(row))

    def _name_of(self, row: int) -> str:
        # Tables that were counted together may have the same ids.
        names = ["sequence_id"] + ["repertoire_id"] * self._result.together
        return " of ".join(self._result.dataset(f"sequences/{name}")[row].decode() for name in names)


def survey(path: str | Path, name: str, junction: str | None = None, model: Model | None = None) -> Survey:
    """Read the result at `path`; InputError if it is damaged or a part of it is missing.

    junction  the sequence_id of the junction whose pathways are to be drawn
    model     the recombination model that junctions are ranked by; None: they are ranked by their weight
    """
    with Result(path) as result, damage(result.path):
        return Survey(result, name, junction, model)
