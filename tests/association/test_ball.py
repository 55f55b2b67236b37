"""The unit `ball` of `hpcvdj associate`: who carries it, its probability, copies; what is found by it alone."""

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.association.multiplicity import FOLDS, weights
from hpcvdj.kernels.neighbours.degrees_cpu import degrees
from hpcvdj.kernels.neighbours.exchanged_pairs import within_one_exchange
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.selection import RESIDUES
from tests.association.drawn import GENES, Pool, metadata

DONORS = 16
CASE = np.arange(DONORS) % 2 == 0


def test_sequences_within_one_exchange_are_those_of_loops():
    rng = np.random.default_rng(1)
    drawn = {
        (int(k), "".join(rng.choice(list("AB"), size))) for k in range(2) for size in (3, 5, 5, 9) for _ in range(40)
    }
    rows = sorted(drawn, key=lambda row: (row[0], len(row[1]), row[1]))
    letters = np.array([text for _, text in rows], dtype="S16").view(np.uint8).reshape(-1, 16)
    lengths, classes = np.array([len(text) for _, text in rows]), np.array([kind for kind, _ in rows])
    found = within_one_exchange(letters, lengths, classes)
    expected = [[kind == other and near(text, own) for other, own in rows] for kind, text in rows]
    np.testing.assert_array_equal(found.todense(), np.array(expected, dtype=np.int64))
    ones = np.ones((len(rows), 1), dtype=np.int64)
    np.testing.assert_array_equal(found.sum(axis=1), degrees(letters, lengths, classes, ones)[:, 0])


def near(text, other):
    return len(text) == len(other) and sum(a != b for a, b in zip(text, other, strict=True)) <= 1


@pytest.fixture(scope="module")
def model():
    return load_model("human_igk")


@pytest.fixture(scope="module")
def tables(model):
    return Pool(model, 3_600, seed=8).donors(np.where(CASE, 300, 150))


def asked(tables, model, **options):
    given = {"unit": "ball", "draws": 2_000, "backend": "cpu", "max_p": 1.0, **options}
    return hpcvdj.associate(tables, model, metadata=metadata(CASE), case={"disease": "ill"}, **given)


@pytest.fixture(scope="module")
def answer(tables, model):
    return asked(tables, model)


def by_loops(tables):
    """The donors of each junction, and the junctions of each sequence."""
    donors, junctions = {}, {}
    for k, table in enumerate(tables.values()):
        columns = [table[name].to_pylist() for name in GENES]
        for v, j, junction, text in zip(*columns, hpcvdj.translate(columns[2]), strict=True):
            key = v.partition("*")[0], j.partition("*")[0], text
            junctions.setdefault(key, set()).add(junction)
            donors.setdefault((*key, junction), set()).add(k)
    return donors, junctions


def key_of(row):
    return row["v_call"], row["j_call"], row["junction_aa"]


@pytest.mark.olga
@pytest.mark.slow
def test_carriers_are_those_of_loops_over_sequences(answer, tables, model):
    assert answer.likely_copies == 0
    donors, junctions = by_loops(tables)
    rows = {key_of(row): row for row in answer.table.to_pylist()}
    expected = {}
    for key in junctions:
        ball = [own for own in junctions if own[:2] == key[:2] and near(key[2], own[2])]
        spelled = [(*own, junction) for own in ball for junction in junctions[own]]
        carriers = set().union(*(donors[own] for own in spelled))
        if len(carriers) >= 3:
            expected[key] = sorted(carriers), len(ball), len(spelled)
    assert rows.keys() == expected.keys()
    assert any(members > 3 for _, members, _ in expected.values())
    for key, (carriers, members, spelled) in expected.items():
        row = rows[key]
        assert row["individuals"] == ",".join(f"d{k:03}" for k in carriers)
        assert (row["carriers"], row["case_carriers"]) == (len(carriers), sum(CASE[k] for k in carriers))
        assert (row["members"], row["nt_variants"]) == (members, spelled)
        assert not row["likely_copy"]
    # The law is that of single sequences: it depends on the numbers alone.
    alone = asked(tables, model, unit="vj-aa").table.to_pylist()
    law = {(row["carriers"], row["case_carriers"]): row["p_value"] for row in rows.values()}
    assert len(alone) > 10
    for row in alone:
        if (row["carriers"], row["case_carriers"]) in law:
            assert row["p_value"] == law[row["carriers"], row["case_carriers"]]
    # Q is that of the sequence in the middle.
    for row in alone:
        own = rows[key_of(row)]
        assert own["p_post"] / own["pgen"] == pytest.approx(row["p_post"] / row["pgen"], rel=1e-12)


@pytest.mark.olga
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::hpcvdj.HpcvdjWarning")
def test_the_probability_is_that_of_the_union(answer, model):
    for row in answer.table.to_pylist()[::400]:
        v, j, text = key_of(row)
        ball = {text[:k] + residue + text[k + 1 :] for k in range(len(text)) for residue in RESIDUES}
        rows = pa.table({"v_call": [v] * len(ball), "j_call": [j] * len(ball), "junction_aa": sorted(ball)})
        p = hpcvdj.pgen(rows, model, sequence="aa", backend="cpu", force=True)["pgen_aa"].to_pylist()
        assert len(p) == 19 * len(text) + 1
        assert row["pgen"] == pytest.approx(sum(filter(None, p)), rel=1e-9)


@pytest.mark.olga
@pytest.mark.slow
@pytest.mark.parametrize("largest", [(4,), (4, 6), (6, 4)])
def test_who_has_a_ball_only_by_a_copy_is_no_carrier(model, largest):
    """A rare junction of a large clone of one case in six others, of whom three have another sequence of its ball.

    If two clones are equally large, neither is the source: it was the one that was read first.
    """
    pool = Pool(model, 6_000, seed=1)
    tables = pool.donors(np.where(CASE, 300, 150), seed=1)
    once = np.flatnonzero(pool.numbers[pool.sequence] == 1)
    texts = hpcvdj.translate(pool.table["junction"].take(pa.array(once)).to_pylist())
    row = int(once[max(range(len(once)), key=lambda k: len(texts[k]))])
    rare = pool.table.slice(row, 1).to_pylist()[0]
    assert rare["junction"][18:20] != "GC"
    # Alanine in two ways, so that it is no copy itself.
    codons = "GCA", "GCC", "GCG"
    others = [{**rare, "junction": rare["junction"][:18] + codon + rare["junction"][21:]} for codon in codons]
    of_donor = {name: [] for name in tables}
    for k in (0, 2, 4, 6, 8, 10, 12):
        of_donor[f"d{k:03}"] = [{**rare, "duplicate_count": 3_000 if k in largest else 1}]
    for k, other in zip((8, 10, 12), others, strict=True):
        of_donor[f"d{k:03}"].append({**other, "duplicate_count": 1})
    for name, table in tables.items():
        reads = pa.array(np.ones(len(table), dtype=int))
        own = pa.Table.from_pylist(of_donor[name], schema=table.schema.append(pa.field("duplicate_count", pa.int64())))
        tables[name] = pa.concat_tables([table.append_column("duplicate_count", reads), own])
    found = asked(dict(reversed(tables.items())) if largest[0] == 6 else tables, model)
    rows = {row["junction_aa"]: row for row in found.table.to_pylist()}
    both = hpcvdj.translate([rare["junction"], others[0]["junction"]])
    assert near(*both)
    for text in both:
        carriers = {"d008", "d010", "d012"} | ({"d004"} if len(largest) == 1 else set())
        assert {*rows[text]["individuals"].split(",")} == carriers
        assert rows[text]["likely_copy"]
        assert rows[text]["members"] == len(carriers) - 2
    assert found.likely_copies == 2


def test_overlapping_balls_have_weights_of_one_fold():
    """Tests of a family depend on each other, so none of them is weighted by the others' p-values."""
    rng = np.random.default_rng(3)
    family = np.repeat(np.arange(40), 50)
    number = len(family)
    carriers, log_p = rng.integers(3, 40, number), rng.normal(size=number)
    p = rng.random(number)
    before = weights(p, carriers, log_p, 0, family)
    changed = p.copy()
    changed[family == 7] = 1e-6
    after = weights(changed, carriers, log_p, 0, family)
    fold = np.random.default_rng([0, 3]).integers(FOLDS, size=40)[family]
    np.testing.assert_array_equal(after[fold == fold[family == 7][0]], before[fold == fold[family == 7][0]])
    assert (after != before).any()
    assert (weights(changed, carriers, log_p, 0)[family == 7] != weights(p, carriers, log_p, 0)[family == 7]).any()


@pytest.mark.olga
@pytest.mark.slow
def test_amino_acids_alone_have_the_same_carriers(answer, tables, model):
    short = {name: table.select(GENES[:2]).append_column(
        "junction_aa", pa.array(hpcvdj.translate(table["junction"].to_pylist()))
    ) for name, table in tables.items()}  # fmt: skip
    found = asked(short, model).table
    keys = ["v_call", "j_call", "junction_aa"]
    both = [table.select([*keys, "carriers", "case_carriers", "members", "pgen"])
            .sort_by([(key, "ascending") for key in keys]).to_pylist() for table in (found, answer.table)]  # fmt: skip
    assert both[0] == both[1]
    assert found["likely_copy"].null_count == len(found)
