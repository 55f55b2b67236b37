"""`hpcvdj associate --time`: clonotypes of one junction whose calls overlap are one."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.association.expansion import united
from hpcvdj.recombination.models import Alleles
from hpcvdj.recombination.repertoire import Repertoire
from tests.association.drawn import distinct_junctions, visits
from tests.kernels.neighbours.plain import packed
from tests.loci import LOCI, exhaustive_but


def asked(visit, model="human_trb_m15"):
    return hpcvdj.associate(visit[0], model, metadata=visit[1], subject="who", time="month", backend="cpu",
                            max_p=1.0)  # fmt: skip


TIES = {"TRBV6-2*01": "TRBV6-2,TRBV6-3", "TRBV12-3*01": "TRBV12-4,TRBV12-3", "TRBJ2-1*01": "TRBJ2-1,TRBJ2-2"}
"""Calls as another run of an aligner gives them."""


@pytest.mark.slow
@pytest.mark.parametrize("planted", [0, 25])
def test_ties_of_calls_at_one_time_are_no_expansions(planted):
    """Clonotypes that were called with one gene before, and with two after, had no reads before."""
    junctions = distinct_junctions("human_trb_m15", 4_000)
    drawn = visits(junctions, seed=23, number=4_000, depths=(8_000, 8_000, 24_000), planted=planted)
    plain = asked(drawn)
    tables = dict(drawn[0])
    for name in ("v_call", "j_call"):
        calls = pa.array([TIES.get(call, call) for call in tables["s2"][name].to_pylist()])
        tables["s2"] = tables["s2"].set_column(tables["s2"].column_names.index(name), name, calls)
    changed = sum(own != other for own, other in zip(tables["s2"]["v_call"], drawn[0]["s2"]["v_call"], strict=True))
    assert changed > 50
    tied = asked((tables, *drawn[1:]))
    assert tied.hits == plain.hits
    assert (plain.hits > 5) == bool(planted)
    names = ["junction", "reads_before", "reads_after", "p_value", "q_value"]
    own, other = (sorted(found.table.select(names).to_pylist(), key=lambda row: list(row.values())[:3])
                  for found in (tied, plain))  # fmt: skip
    assert own == other


@pytest.mark.olga
@pytest.mark.slow
@pytest.mark.parametrize("planted", [0, 25])
@pytest.mark.parametrize("model", exhaustive_but(LOCI, "mouse_tra"))
def test_ties_of_frequent_genes_in_every_locus(model, planted):
    junctions = distinct_junctions(model, 4_000)
    drawn = visits(junctions, seed=7171, number=4_000, depths=(8_000, 8_000, 24_000), planted=planted)
    genes = [call.partition("*")[0] for call in junctions["v_call"].to_pylist()]
    (first, _), (second, _) = Counter(genes).most_common(2)
    table = drawn[0]["s2"]
    calls = [f"{second},{first}" if call.partition("*")[0] == first else call for call in table["v_call"].to_pylist()]
    tied = table.set_column(table.column_names.index("v_call"), "v_call", pa.array(calls))
    found = asked(({**drawn[0], "s2": tied}, *drawn[1:]), model)
    assert found.hits == asked(drawn, model).hits
    assert (found.hits > 15) == bool(planted)
    assert found.hits > 15 or not found.hits


CALLS = ["A", "B", "C", "A,B", "B,C", "A,C,D", "D"]


@pytest.mark.parametrize("seed", range(8))
def test_clonotypes_of_a_junction_are_united_as_loops_do(seed):
    rng = np.random.default_rng(seed)
    pairs = [(v, j) for v in CALLS for j in CALLS[:4] if rng.random() < 0.7]
    rows = [(k, text) for k in range(len(pairs)) for text in ("ACGT", "ACGA", "TTTTT") if rng.random() < 0.5]
    reads = rng.integers(1, 5, len(rows))
    alleles = [(Alleles(v, (0,)), Alleles(j, (0,))) for v, j in pairs]
    words, lengths = packed([text for _, text in rows])
    offsets = np.searchsorted([k for k, _ in rows], np.arange(len(pairs) + 1))
    repertoire = Repertoire(words, lengths, alleles, offsets)
    found = united(repertoire, np.arange(len(rows)), reads)

    label = list(range(len(rows)))
    for _ in rows:
        for a, (k, text) in enumerate(rows):
            for b, (other, same) in enumerate(rows):
                overlap = [set(x.split(",")) & set(y.split(",")) for x, y in zip(pairs[k], pairs[other], strict=True)]
                if text == same and all(overlap):
                    label[a] = label[b] = min(label[a], label[b])
    of = [[b for b in range(len(rows)) if label[b] == label[a]] for a in range(len(rows))]
    assert found.tolist() == [max(own, key=lambda row: (reads[row], -row)) for own in of]
    assert len(set(found.tolist())) < len(rows)
    # Sequences of other subjects do not matter.
    some = np.flatnonzero(rng.random(len(rows)) < 0.6)
    alone = united(repertoire.subset(some), np.arange(len(some)), reads[some])
    assert united(repertoire, some, reads[some]).tolist() == some[alone].tolist()
