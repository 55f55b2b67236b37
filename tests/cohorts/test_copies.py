"""hpcvdj.cohorts.copies: the chance of the same nucleotides by enumeration; planted copies, honest public sequences."""

from dataclasses import replace
from itertools import product
from math import comb

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.chance.clone_sizes import CloneSizes
from hpcvdj.cohorts.copies import BOTH, PERHAPS_SAME, SAME, copies_of, most_alike, sources_of
from hpcvdj.cohorts.holding import Holding
from hpcvdj.cohorts.settings import Naming, SharingSettings
from hpcvdj.cohorts.sharing import apart_from
from hpcvdj.cohorts.sharing_question import SharingQuestion
from hpcvdj.probabilities.settings import PgenConfig
from hpcvdj.recombination.alphabet import AMINO_ACIDS
from hpcvdj.recombination.igor import load_model
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.reading import Reading
from hpcvdj.values.compute import values_of
from tests.cohorts.drawn import drawn
from tests.loci import LOCI, exhaustive_but


def holding(entries, junctions, individuals, reads=None):
    """Who has which junction: pairs of a junction and an individual."""
    sequence, individual = (np.array(column, dtype=np.int64) for column in zip(*entries, strict=True))
    own = None if reads is None else np.array(reads, dtype=np.int64)
    return Holding.of(sequence, individual, junctions, individuals, own, np.add)


def clones_of(has):
    """The clone sizes of each individual."""
    return [] if has.reads is None else [CloneSizes.of(has.reads[has.individual == k]) for k in range(has.individuals)]


def of_one(entries, p, individuals, reads=None, contaminated=None):
    """Of junctions that all spell one sequence."""
    p = np.array(p)
    has = holding(entries, len(p), individuals, reads)
    same = np.zeros((individuals, individuals), dtype=bool) if contaminated is None else contaminated
    every = np.zeros(len(p), dtype=np.int64)
    return copies_of(has, p, every, np.array([p.sum()]), every, same, clones_of(has))


def test_the_chance_by_hand():
    """Three individuals have one junction, a fourth another: C(4, 3) r²."""
    found = of_one([(0, 0), (0, 1), (0, 2), (1, 3)], [1e-9, 3e-9], 4)
    assert found.same_nt.tolist() == [3]
    assert found.p_same[0] == pytest.approx(comb(4, 3) * 0.25**2)
    assert found.p_reads[0] == 1
    assert not found.likely[0]


@pytest.mark.parametrize("seed", range(4))
def test_it_is_a_bound(seed):
    """Of all ways in which four individuals draw junctions: the chance of what is at least as improbable."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(5, 0.5))
    outcomes = []
    for choice in product(range(5), repeat=4):
        chance = float(np.prod(p[list(choice)]))
        bound = of_one([(own, k) for k, own in enumerate(choice)], p, 4).p_same[0]
        outcomes.append((bound, chance))
    for level in (0.5, 0.2, 0.05, 0.01, 1e-3):
        assert sum(chance for bound, chance in outcomes if bound <= level) <= level * (1 + 1e-9)
    assert any(bound < 0.2 for bound, _ in outcomes)


def test_reads_show_a_source():
    """Of a hundred junctions of the source one is so large; three have it."""
    entries = [(0, 0), (0, 1), (0, 2), *((k, 0) for k in range(1, 100))]
    p = [2e-10, *[1e-12] * 99]
    spelled = np.array([0, *[-1] * 99])
    none = np.zeros((3, 3), dtype=bool)

    def found(source, others):
        has = holding(entries, 100, 3, [source, *others, *[1] * 99])
        return copies_of(has, np.array(p), spelled, np.array([1e-9]), spelled, none, clones_of(has))

    large = found(40, [2, 1])
    assert large.p_same[0] == pytest.approx(0.2**2)
    assert large.p_reads[0] == pytest.approx(3 / 100)
    assert not large.likely[0]
    assert large.p_same[0] * large.p_reads[0] > BOTH
    assert found(39, [2, 1]).p_reads[0] == 1, "not twenty times the next"
    assert found(40, [1, 2]).p_reads[0] == large.p_reads[0]


def test_evidence_together():
    p, entries = [2e-11, 9.8e-10], [(0, 0), (0, 1), (1, 2)]
    assert SAME < 3 * 0.02 <= 0.06
    alone = of_one([(0, 0), (0, 1)], p, 3)
    assert SAME < alone.p_same[0] <= PERHAPS_SAME
    assert not alone.likely[0]
    pair = np.zeros((3, 3), dtype=bool)
    pair[0, 1] = pair[1, 0] = True
    assert of_one([(0, 0), (0, 1)], p, 3, contaminated=pair).likely[0]
    pair[0, 1] = pair[1, 0] = False
    pair[0, 2] = pair[2, 0] = True
    assert not of_one([(0, 0), (0, 1)], p, 3, contaminated=pair).likely[0]
    assert not of_one(entries, p, 3, contaminated=pair).likely[0], "more than the chance allowed"
    assert of_one([(0, 0), (0, 1)], [1e-14, 1e-9], 3).likely[0]


def test_what_has_no_probability_says_nothing():
    found = of_one([(0, 0), (0, 1), (1, 2)], [0.0, 1e-9], 3)
    assert found.p_same.tolist() == [1]
    assert not found.likely[0]


def test_the_least_probable_counts_for_all_that_are_tried():
    p = [0.1, 0.05, 0.85]
    entries = [(0, 0), (0, 1), (1, 2), (1, 3)]
    found = of_one(entries, p, 4)
    assert found.p_same[0] == pytest.approx(2 * comb(4, 2) * 0.05)
    assert found.same_nt.tolist() == [2]


CODONS: dict[str, list[str]] = {}
for codon, residue in AMINO_ACIDS.items():
    CODONS.setdefault(residue, []).append(codon)


def convergent(model, individuals, number, seed):
    """Public sequences as recombination makes them: each individual draws its own nucleotides of the amino acids.

    Those of the middle residues: the first three and the last four codons are kept, of sequences that are mostly made
    with these.
    """
    rng, out = np.random.default_rng(seed), {}
    for row in drawn(model, 20 * number, seed).to_pylist():
        codons = [row["junction"][k : k + 3] for k in range(0, len(row["junction"]), 3)]
        middle = [CODONS[AMINO_ACIDS[codon]] for codon in codons[3:-4]]
        if len(out) == number or not 2 <= np.prod([len(own) for own in middle]) <= 3_000:
            continue
        texts = ["".join([*codons[:3], *own, *codons[-4:]]) for own in product(*middle)]
        genes = {name: [row[name]] * len(texts) for name in ("v_call", "j_call")}
        inputs = Inputs.of_table(pa.table({**genes, "junction": texts}), PgenConfig().reads(Reading()))
        table, *_ = values_of(inputs, model, PgenConfig())
        p = table["pgen_nt"].to_numpy()
        if p.sum() < 0.9 * table["pgen_aa"][0].as_py():
            continue
        who = rng.choice(individuals, 8, replace=False)
        key = row["v_call"].partition("*")[0], row["j_call"].partition("*")[0], row["junction_aa"]
        out[key] = [
            {**row, "junction": texts[k], "repertoire_id": f"i{i}", "duplicate_count": int(rng.pareto(0.7) * 3) + 1}
            for i, k in zip(who.tolist(), rng.choice(len(texts), 8, p=p / p.sum()).tolist(), strict=True)
        ]
    return out


@pytest.mark.slow
@pytest.mark.olga
@pytest.mark.parametrize("name", exhaustive_but([name for name in LOCI if name != "human_igh"], "human_trb"))
def test_planted_copies_and_honest_sequences(name):
    """Of clones that were carried over, most hits are called copies; of honest sequences, hardly any."""
    model, individuals, size = load_model(name), 12, 15_000
    table = drawn(model, individuals * size, 8)
    rng = np.random.default_rng(2)
    reads = np.minimum(rng.pareto(1.0, len(table)) + 1, 1e5).astype(np.int64)
    rows = table.append_column("repertoire_id", pa.array([f"i{k // size}" for k in range(len(table))]))
    rows = rows.append_column("duplicate_count", pa.array(reads)).to_pylist()
    copied = {}
    for row in (rows[k] for k in rng.choice(size, 60, replace=False).tolist()):
        key = row["v_call"].partition("*")[0], row["j_call"].partition("*")[0], row["junction_aa"]
        row["duplicate_count"] = int(rng.integers(3_000, 60_000))
        copied[key] = [
            {**row, "repertoire_id": f"i{k}", "duplicate_count": int(rng.integers(1, 4))}
            for k in 1 + rng.choice(individuals - 1, 6, replace=False)
        ]
    honest = {key: own for key, own in convergent(model, individuals, 60, 9).items() if key not in copied}
    planted = [row for own in (*copied.values(), *honest.values()) for row in own]
    everything = [{**row, "sequence_id": f"q{k}"} for k, row in enumerate([*rows, *planted])]
    found = hpcvdj.sharing(pa.Table.from_pylist(everything), model, backend="cpu", draws=60_000)
    of_sequence = {(row["v_call"], row["j_call"], row["junction_aa"]): row for row in found.table.to_pylist()}
    hits = [key for key, row in of_sequence.items() if row["q_value"] is not None and row["q_value"] <= 0.05]
    carried = [of_sequence[key]["likely_copy"] for key in hits if key in copied]
    # Of loci without D, many sequences have hardly any other nucleotides: copies of these cannot be told.
    assert len(carried) >= 10
    assert np.mean(carried) >= (0.85 if model.has_d or name == "human_tra" else 0.5)
    public = [of_sequence[key]["likely_copy"] for key in honest if key in of_sequence]
    assert len(public) >= 40
    assert np.mean(public) <= 0.03
    others = [row["likely_copy"] for key, row in of_sequence.items() if key not in copied]
    assert np.mean(others) <= 0.01


@pytest.mark.parametrize(
    ("pairs", "apart"),
    [
        ([], "abcdef"), ([(0, 1)], "bcdef"), ([(0, k) for k in range(1, 6)], "bcdef"),
        ([(0, 1), (1, 2), (3, 4)], "acef"), ([(k, (k + 1) % 6) for k in range(6)], "bdf"),
        ([(i, j) for i in range(6) for j in range(i)], "f"),
    ],
)  # fmt: skip
def test_individuals_of_whom_no_two_contaminated_each_other(pairs, apart):
    """Those with most partners are left out, the first by name of equal ones, whatever their order is."""
    for order in (np.arange(6), np.random.default_rng(1).permutation(6)):
        contaminated, place = np.zeros((6, 6), dtype=bool), np.argsort(order)
        for i, j in pairs:
            contaminated[place[i], place[j]] = contaminated[place[j], place[i]] = True
        names = ["abcdef"[k] for k in order]
        chosen = apart_from(contaminated, names)
        assert "".join(sorted(name for name, kept in zip(names, chosen, strict=True) if kept)) == apart


@pytest.mark.olga
@pytest.mark.slow
def test_likely_copies_do_not_count_for_q():
    """Each of six drawn individuals has 60 junctions of the next one, too."""
    rows, parts = drawn(load_model("human_tra"), 48_000, 77), []
    for k in range(6):
        table = pa.concat_tables([rows.slice(8_000 * k, 8_000), rows.slice(8_000 * ((k + 1) % 6), 60)])
        parts.append(table.append_column("repertoire_id", pa.array([f"s{k}"] * len(table))))
    with pytest.warns(hpcvdj.HpcvdjWarning, match="share improbable junctions|improbable junctions shared"):
        copies = hpcvdj.sharing(pa.concat_tables(parts), "human_tra", draws=100_000, backend="cpu")
    honest = pa.concat_tables([part.slice(0, 8_000) for part in parts])
    without = hpcvdj.sharing(honest, "human_tra", draws=100_000, backend="cpu")
    assert not without.copied.any()
    # Of 360 copies; with these, q was 0.665.
    assert (int(copies.copied.sum()), int((copies.observed - without.observed)[2:].sum())) == (151, 346)
    assert (without.fitted_to, copies.fitted_to) == (6, 3), "every second one of a ring"
    # All other hits are copies, too, though their nucleotides do not show it.
    assert copies.hits - copies.likely_copies == copies.hits_of_contaminated > 5
    assert without.hits_of_contaminated == 0
    # With all six individuals, q was 0.772.
    assert (without.q, copies.q) == pytest.approx((0.949, 0.925), abs=0.002)
    assert replace(copies, copied=0 * copies.copied).refuted
    question = SharingQuestion(Naming(), SharingSettings())
    said = [text for _, text in question.summary(copies)]
    assert "fitted to 3 individuals, no two of whom contaminated each other" in said
    given = SharingQuestion(Naming(), SharingSettings(q=copies.q)).summary(copies)
    assert not any("fit" in text for _, text in given), "a given q is not fitted"
    fitted = replace(without, observed=3 * without.observed, copied=2 * without.observed)
    assert not fitted.refuted, "all that is more is likely copies"


def test_the_most_of_a_group_with_the_same_junction_are_those_of_loops():
    rng = np.random.default_rng(2)
    for _ in range(30):
        donors, junctions, sequences = 9, 40, 12
        holders = [rng.choice(donors, rng.integers(1, 7), replace=False).tolist() for _ in range(junctions)]
        spelled = rng.integers(-1, sequences, junctions).astype(np.int32)
        pairs = np.array([(k, donor) for k, own in enumerate(holders) for donor in own])
        has = Holding.of(pairs[:, 0], pairs[:, 1], junctions, donors, None, np.maximum)
        group, expected = rng.integers(-1, 3, donors), [0] * sequences
        source = dict(zip(zip(has.sequence.tolist(), has.individual.tolist(), strict=True),
                          sources_of(has, group).tolist(), strict=True))  # fmt: skip
        for k, own in enumerate(holders):
            alike = {g: [donor for donor in own if group[donor] == g] for g in range(3)}
            for donor in own:
                others = alike.get(int(group[donor]), [])
                assert (source[k, donor] > 0) == (len(others) > 1)
                assert {key for key, number in source.items() if number and number == source[k, donor]} == (
                    {(k, other) for other in others} if len(others) > 1 else set()
                )
            most = max(map(len, alike.values()))
            if spelled[k] >= 0 and most > 1:
                expected[spelled[k]] = max(expected[spelled[k]], most)
        found = most_alike(has, spelled, group, sequences)
        assert found.tolist() == expected
        assert found.dtype == np.int64


@pytest.mark.olga
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size"), [("human_igk", 400), pytest.param("mouse_tra", 1_000, marks=pytest.mark.exhaustive)]
)
def test_hits_from_a_common_source_may_be_copies(name, size):
    """Of 30 junctions of one individual in 11 others of 24, those that nearly all recombinations spell alike."""
    rows, parts = drawn(load_model(name), 24 * size, 9131), []
    for k in range(24):
        tables = [rows.slice(k * size, size), *[rows.slice(size, 30)] * (k % 2)]
        parts.append(pa.concat_tables(tables))
    parts = {f"s{k:02}": part for k, part in enumerate(parts)}
    with pytest.warns(hpcvdj.HpcvdjWarning, match="of a common source"):
        copies = hpcvdj.sharing(parts, name, draws=20_000, backend="cpu")
    assert copies.likely_copies >= 20
    assert copies.hits - copies.likely_copies == copies.hits_of_contaminated >= 3
    said = [text for _, text in SharingQuestion(Naming(), SharingSettings()).summary(copies)]
    assert any(f"{copies.hits_of_contaminated} of these may be copies" in text for text in said)
