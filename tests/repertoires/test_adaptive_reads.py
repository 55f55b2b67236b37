"""Tables as a sequencer makes them, of known junctions: the reads are cut to exactly these, or excluded."""

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.recombination.packaged import germline_paths, model_paths
from hpcvdj.repertoires.formats.adaptive_names import end_of_j
from hpcvdj.repertoires.formats.format import REASON
from hpcvdj.repertoires.readers import MemoryReader
from tests.repertoires.test_adaptive import rows_of, translated


def spelt(call):
    """Adaptive's name of an allele of a TRB gene."""
    gene, _, allele = call.partition("*")
    family, _, number = gene[4:].partition("-")
    return f"TCRB{gene[3]}{int(family):02}-{int(number or 1):02}*{allele}"


def reads_of(junctions, spare, length, rng):
    """Reads of `length` bases that end `spare` bases after their junctions, or before the ends of these."""
    upstream = "".join(rng.choice(list("ACGT"), length))
    after = "GGGCCG"[: max(spare, 0)]
    texts = [(upstream + text + after)[: len(upstream) + len(text) + spare] for text in junctions]
    return [text[-length:] for text in texts]


def adaptive_table(drawn, spare, rng, length=87):
    """As Adaptive exports junctions, all of which begin within the read."""
    junctions = drawn.column("junction").to_pylist()
    starts = [length - spare - len(text) for text in junctions]
    proteins, frames = drawn.column("junction_aa").to_pylist(), drawn.column("productive").to_pylist()
    return pa.table({
        "rearrangement": reads_of(junctions, spare, length, rng),
        "amino_acid": proteins,
        "frame_type": [
            "In" if frame == "T" else "Stop" if text else "Out" for frame, text in zip(frames, proteins, strict=True)
        ],
        "templates": ["1"] * len(junctions),
        "v_index": list(map(str, starts)),
        "cdr3_length": [str(len(text)) for text in junctions],
        "v_resolved": list(map(spelt, drawn.column("v_call").to_pylist())),
        "j_resolved": list(map(spelt, drawn.column("j_call").to_pylist())),
    })  # fmt: skip


def fitting(drawn, longest):
    """Rows whose junction fits into a read and begins with Cys 104."""
    keep = [text.startswith(("TGT", "TGC")) and len(text) <= longest for text in drawn.column("junction").to_pylist()]
    return drawn.filter(pa.array(keep))


@pytest.fixture(scope="module")
def human():
    return drawn_reads(21_000)


def drawn_reads(rows):
    drawn = hpcvdj.generate(model_paths()["human_trb_m15"], rows, seed=3)
    frames = ["T" if productive else "F" for productive in drawn.column("productive").to_pylist()]
    return drawn.set_column(drawn.column_names.index("productive"), "productive", pa.array(frames))


def mouse_junctions(rows, rng):
    """Like those of mouse TRB: V and J chewed back, random bases between them."""
    germline = hpcvdj.read_germline(germline_paths()["mouse_trb"])
    v = [segment for segment in germline.of("V") if segment.functional == "F"]
    j = [segment for segment in germline.of("J") if segment.functional == "F"]
    out = []
    for _ in range(rows):
        a, b = v[rng.integers(len(v))], j[rng.integers(len(j))]
        middle = "".join(rng.choice(list("ACGT"), rng.integers(0, 14)))
        left = a.sequence[: len(a.sequence) - rng.integers(0, 6)]
        text = "TGT" + left + middle + b.sequence[rng.integers(0, 6) :] + end_of_j("mouse", b.allele)[-3:]
        protein = translated(text) if len(text) % 3 == 0 else ""
        out.append((a.allele, b.allele, text, protein, "T" if protein and "*" not in protein else "F"))
    names = ["v_call", "j_call", "junction", "junction_aa", "productive"]
    return pa.table(dict(zip(names, map(list, zip(*out, strict=True)), strict=True)))


def compare(table, drawn):
    got = pa.Table.from_batches(
        list(MemoryReader(table).batches(["v_call", "j_call", "junction", "productive", REASON]))
    )
    assert set(got.column(REASON).to_pylist()) == {""}
    for name in ("v_call", "j_call", "junction", "productive"):
        assert got.column(name).to_pylist() == drawn.column(name).to_pylist(), name


@pytest.mark.parametrize("rows", [21_000, pytest.param(105_000, marks=pytest.mark.exhaustive)])
def test_human_reads_round_trip(human, rows):
    drawn = fitting(human if rows == 21_000 else drawn_reads(rows), 81)
    assert drawn.num_rows > 0.95 * rows
    compare(adaptive_table(drawn, 6, np.random.default_rng(1)), drawn)


@pytest.mark.parametrize("rows", [5_000, pytest.param(20_000, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("spare", [-3, -2])
def test_mouse_reads_round_trip(spare, rows):
    rng = np.random.default_rng(2)
    drawn = mouse_junctions(rows, rng)
    assert fitting(drawn, 80).num_rows == drawn.num_rows
    compare(adaptive_table(drawn, spare, rng), drawn)


def test_reads_that_end_seven_bases_early_are_completed_or_excluded(human):
    drawn = fitting(human.slice(0, 20_000), 60)
    table = adaptive_table(drawn, -7, np.random.default_rng(3))
    got = rows_of(table, ["junction", REASON])
    exact = [row["junction"] == text for row, text in zip(got, drawn.column("junction").to_pylist(), strict=True)]
    # What is not completed has a reason, and nothing is completed to another junction.
    assert all(bool(row[REASON]) != same for row, same in zip(got, exact, strict=True))
    # The others have a J that is chewed back into the bases that must agree.
    assert np.mean(exact) > 0.8


@pytest.mark.parametrize("spare", [6, -3])
def test_without_positions_amino_acids_place_the_junction(human, spare):
    rng = np.random.default_rng(4)
    drawn = fitting(human.slice(0, 10_000), 80) if spare > 0 else mouse_junctions(5_000, rng)
    drawn = drawn.filter(pa.array([text != "" for text in drawn.column("junction_aa").to_pylist()]))
    table = adaptive_table(drawn, spare, rng).drop_columns(["v_index", "cdr3_length"])
    got = rows_of(table, ["junction", REASON])
    unlike = [
        row for row, text in zip(got, drawn.column("junction").to_pylist(), strict=True) if row["junction"] != text
    ]
    # Reads have no amino acids of another junction by chance but those of the shortest ones.
    assert len(unlike) < 10
    assert all(row[REASON] and not row["junction"] for row in unlike)
