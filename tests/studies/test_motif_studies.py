"""hpcvdj study motifs and motif-tables: what is measured, and the pages that are made of it."""

from dataclasses import replace

import numpy as np
import pytest

from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.sequences import sequence_set
from hpcvdj.studies import motif_tables, motifs
from hpcvdj.studies.motif_tables import MotifTables, TableRow
from hpcvdj.studies.motifs import Motifs, SequenceSource, joined, with_other_strands
from hpcvdj.studies.pages import IdentityCheck, Plot
from hpcvdj.studies.tables import grouped
from tests.kernels.host import fake_cupy
from tests.kernels.kmers.cases import exact, random_text, raw

SOURCE = SequenceSource(None, 6, 60)
TEXTS = tuple(SOURCE.read()[0].text(i) for i in range(6))


def quiet(*words):
    """Say nothing."""


def table_rows(*parts, **changes):
    plan = motif_tables.TablesPlan(
        parts, k=[8], settings_k=6, d=1, cpu_number=4, repeats=2, backend="cpu", buckets=[1, 4]
    )
    return motif_tables.measure(SOURCE, replace(plan, **changes), quiet)


def upper_sum(counters):
    """The sum over all pairs, each once."""
    return sum(int(np.triu(plane).sum()) for plane in counters)


def page(study, rows):
    blocks = list(study.page(rows))
    return blocks, "\n".join(map(str, blocks))


def test_tables_on_cpu_cores():
    rows = table_rows("construction", "settings", "speedup", "lengths")
    assert {row.part for row in rows} == {"construction", "speedup", "lengths"}
    built = [row for row in rows if row.part == "construction"]
    assert [(row.hash, row.buckets, row.repeat) for row in built] == [
        (name, buckets, repeat) for name in ("djb2", "2umt", "xor") for buckets in (1, 4) for repeat in (0, 1)
    ]
    assert all(row.seconds > 0 and (row.sequences, row.of, row.length) == (6, 6, 60) for row in built)
    compared = [row for row in rows if row.pairs]
    assert {(row.sequences, row.pairs) for row in compared if row.part == "speedup"} == {(4, 10)}
    assert sorted({row.length for row in compared if row.part == "lengths"}) == [60, 120, 180]
    assert {row.total for row in compared if row.part == "speedup"} == {upper_sum(raw(TEXTS[:4], 8, 1))}
    blocks, text = page(MotifTables(), rows)
    assert "n = 4 (of 6)" in text
    assert "identical for all kernels and settings" in text
    assert [block.name for block in blocks if isinstance(block, Plot)] == ["construction", "speedup", "lengths"]


@pytest.mark.skipif(fake_cupy.COMPILER is None, reason="no g++")
def test_tables_with_a_gpu(kernels, tmp_path, monkeypatch):
    """All kernels, on the stand-in: totals are those of the definition, and the fastest settings go on."""
    few = first_settings()
    monkeypatch.setattr(motif_tables, "settings", lambda: iter(few))
    with fake_cupy.Fake(kernels).installed(monkeypatch):
        import cupy

        monkeypatch.setattr(cupy.cuda, "get_elapsed_time", lambda start, end: 1.0)
        rows = table_rows("settings", "speedup", backend="cuda", repeats=1, cpu_number=6)
    names = {"sequential-bucket", "warp-to-bucket", "thread-to-bucket", "thread-to-pair"}
    assert {row.kernel for row in rows if row.part == "settings"} == names
    assert {row.kernel for row in rows if row.part == "speedup"} == {*names, "cpu"}
    for row in rows:
        assert row.total == upper_sum(raw(TEXTS, row.k, 1))
    assert {row.chunk for row in rows if row.kernel == "thread-to-pair"} == {2}
    _, text = page(MotifTables(), rows)
    assert "| thread-to-bucket | linear | 32 | 32 | 8 |" in text
    assert "thread-to-pair" in text.split("## Speed-up")[1]


def first_settings():
    """One of the settings of each kernel that merges."""
    first = {}
    for options in motif_tables.settings():
        first.setdefault((options.kernel, options.linear), options)
    assert len(first) == 6
    return [options for options in first.values() if options.linear]


def test_totals_that_differ_are_called_out():
    rows = table_rows("speedup")
    wrong = [*rows[:-1], replace(rows[-1], total=rows[-1].total + 1)]
    checks = [
        [block.holds for block in page(MotifTables(), part)[0] if isinstance(block, IdentityCheck)]
        for part in (rows, wrong)
    ]
    assert checks == [[True], [False]]


def test_medians_and_speedup_by_hand():
    row = TableRow("speedup", "cpu", "", "xor", "2x32", 8, 2, 500, 10, 10, 1, 256, 8, 2, "X", 0, 2.0, 55, total=7)
    gpu = replace(row, kernel="thread-to-pair", sequences=100, pairs=5050)
    rows = [row, replace(row, buckets=16, seconds=1.0), *(replace(gpu, seconds=s) for s in (1.0, 2.0, 9.0))]
    assert "| 8 | 55 | 2525 (45.9) |" in page(MotifTables(), rows)[1]


@pytest.mark.parametrize(
    ("parts", "changes", "message"),
    [
        (["figures"], {}, "parts must be one of construction"),
        (["settings"], {}, "without a GPU only construction"),
        (["speedup"], {"k": [40]}, r"^k=40: "),
        (["construction"], {"k": [22]}, "encoding 3x64"),
    ],
)
def test_tables_that_cannot_be_measured(parts, changes, message):
    with pytest.raises(InputError, match=message):
        table_rows(*parts, **changes)


def motif_rows(**changes):
    plan = motifs.MethodsPlan(k=[6, 12], d=1, methods="matrix,pigeonhole,tables:4", repeats=2, backend="cpu")
    return motifs.measure(SOURCE, replace(plan, **changes), quiet)


def test_methods_of_comparing():
    rows = motif_rows()
    assert list(grouped(rows, "k", "method")) == [
        (6, "matrix"), (6, "pigeonhole"), (6, "tables"), (12, "pigeonhole"), (12, "tables"),
    ]  # fmt: skip
    for row in rows:
        assert (row.sequences, row.of) == (4 if row.method == "tables" else 6, 6)
        assert row.total == upper_sum(exact(TEXTS[: row.sequences], row.k, 1))
        assert row.load > 0 < row.compare
        assert (row.blocks > 0) == (row.method == "pigeonhole")
    blocks, text = page(Motifs(), rows)
    assert all(block.holds for block in blocks if isinstance(block, IdentityCheck))
    assert "6 sequences of up to 60 bases, random, seed 1, d = 1" in text
    assert text.count("†4 |") == 2
    with pytest.raises(InputError, match=r"methods must be one of .*matrix"):
        motif_rows(methods="bitslice")
    with pytest.raises(InputError, match=r"^k=3: "):
        motif_rows(k=[3])


def test_seconds_for_all_sequences():
    row = replace(motif_rows(k=[6], repeats=1)[0], load=1.0, compare=3.0, sequences=10, of=20)
    assert row.seconds_for_all == 2 + 12
    assert replace(row, method="tables").seconds_for_all == 12
    wrong = replace(row, checksum=row.checksum + 1)
    assert not next(block for block in Motifs().page([row, wrong]) if isinstance(block, IdentityCheck)).holds


def test_sequences_of_a_study(tmp_path):
    rng = np.random.default_rng(1)
    texts = [random_text(rng, 20) for _ in range(5)]
    path = tmp_path / "some.fa"
    path.write_text("".join(f">{i}\n{text}\n" for i, text in enumerate(texts)))
    sequences, of = SequenceSource(path, 2, both_strands=True).read(2)
    assert of == len(sequences) == len(set(sequences.names)) == 4
    assert [sequences.text(i) for i in (0, 1)] == [texts[0] + texts[1], texts[2] + texts[3]]
    flipped = texts[0].translate(str.maketrans("ACGT", "TGCA"))[::-1]
    assert sequences.text(2).endswith(flipped)
    sequences, of = SequenceSource(path, 2).read()
    assert (len(sequences), of, SequenceSource(path, 2).name) == (2, 5, "some.fa")
    some = sequence_set(texts)
    assert [joined(some, 1).text(i) for i in range(5)] == texts
    assert with_other_strands(some).names[5] == "1-"
    first, again, other = (SequenceSource(None, 3, 40, seed).read()[0].codes.tolist() for seed in (1, 1, 2))
    assert first == again != other
