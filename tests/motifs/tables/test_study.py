"""hpcvdj study motif-tables: what is measured, and what is rendered of it without a GPU."""

import importlib
import sys
from dataclasses import replace

import numpy as np
import pytest

from hpcvdj.errors import InputError
from hpcvdj.motifs.sequences import sequence_set
from hpcvdj.studies import measuring, motif_sources, motif_tables, motif_tables_runs, renderer
from hpcvdj.studies.motif_sources import Source, joined, with_other_strands
from hpcvdj.studies.motif_tables_runs import TableRow, measure
from tests.backends.host import fake_cupy
from tests.motifs.tables import on_host
from tests.motifs.tables.cases import exact, kmers, random_text

SOURCE = Source(None, 6, 60)


def quiet(*words):
    """Say nothing."""


def measured(parts, **options):
    settings = {
        "lengths_of_kmers": [8], "settings_k": 6, "d": 1, "bucket_counts": [1, 4], "cpu_number": 4, "repeats": 2,
        "backend": "cpu", "say": quiet, **options,
    }  # fmt: skip
    return measure(SOURCE, parts, **settings)


def rendered(rows, folder):
    pytest.importorskip("matplotlib")
    measuring.write(rows, folder, "x", {"study": "motif_tables", "command": "hpcvdj study motif-tables", "date": "now"})
    return renderer(folder)(folder)


def test_on_cpu_cores(tmp_path):
    rows = measured(["construction", "settings", "speedup", "lengths"])
    assert {row.part for row in rows} == {"construction", "speedup", "lengths"}
    built = [row for row in rows if row.part == "construction"]
    assert [(row.hash, row.buckets, row.repeat) for row in built] == [
        (name, buckets, repeat) for name in ("djb2", "2umt", "xor") for buckets in (1, 4) for repeat in (0, 1)
    ]
    assert all(row.seconds > 0 and (row.sequences, row.of, row.length) == (6, 6, 60) for row in built)
    compared = [row for row in rows if row.pairs]
    assert {(row.sequences, row.pairs) for row in compared if row.part == "speedup"} == {(4, 10)}
    assert sorted({row.length for row in compared if row.part == "lengths"}) == [60, 120, 180]
    text = rendered(rows, tmp_path)
    assert "n = 4 (of 6)" in text
    assert "**identical**" in text
    assert sorted(path.name for path in tmp_path.glob("*.png")) == ["construction.png", "lengths.png", "speedup.png"]


@pytest.mark.skipif(fake_cupy.COMPILER is None, reason="no g++")
def test_with_a_gpu(tmp_path, monkeypatch):
    """All kernels, on the stand-in: totals are those of the definition."""
    on_host.begin(tmp_path, monkeypatch)
    try:
        backend = importlib.import_module("hpcvdj.kernels.cuda")
        monkeypatch.setattr(backend.CudaBackend, "uuid", "GPU-host")
        monkeypatch.setattr(sys.modules["cupy"].cuda, "get_elapsed_time", lambda start, end: 1.0)
        for name, values in {
            "BLOCKS": (32,),
            "BUCKETS": (1, 8),
            "CHUNKS": (2,),
            "TUNED": motif_tables_runs.TUNED[:1],
        }.items():
            monkeypatch.setattr(motif_tables_runs, name, values)
        rows = measured(["settings", "speedup"], backend="cuda", repeats=1, cpu_number=6)
    finally:
        on_host.forget()
    sequences, _ = SOURCE.read()
    texts = tuple(sequences.text(i) for i in range(6))
    kernels = {"sequential-bucket", "warp-to-bucket", "thread-to-bucket", "thread-to-pair"}
    assert {row.kernel for row in rows if row.part == "settings"} == kernels
    assert {row.kernel for row in rows if row.part == "speedup"} == {*kernels, "cpu"}
    assert len({row.total for row in rows if row.k == 8}) == 1
    from hpcvdj.kernels.kmers.masks import raw_from_exact

    for row in rows:
        assert row.total == sum(int(np.triu(plane).sum()) for plane in raw_from_exact(exact(texts, row.k, 1), row.k))
    # The fastest settings measured are those that go on.
    pairs = [row for row in rows if row.kernel == "thread-to-pair"]
    assert {row.chunk for row in pairs} == {2}
    text = rendered(rows, tmp_path / "study")
    assert "| thread-to-bucket | 1x1 keep 0 | 32 | 16 | 8 |" in text
    assert "thread-to-pair" in text.split("## Speed-up")[1]


def test_totals_that_differ_are_called_out(tmp_path):
    rows = measured(["speedup"])
    assert motif_tables.totals_identical(rows)
    wrong = [*rows[:-1], replace(rows[-1], total=rows[-1].total + 1)]
    assert "**DIFFERENT**" in rendered(wrong, tmp_path)


def test_medians_and_speedup_by_hand(tmp_path):
    row = TableRow(
        "speedup", "cpu", "", "xor", "2x32", 8, 2, 500, 10, 10, 1, 256, 8, 0, 55, 2.0, 2.0, 1.0, 1.0, 7, 2, "X"
    )
    gpu = replace(row, kernel="thread-to-pair", sequences=100, pairs=5050)
    rows = [row, replace(row, buckets=16, seconds=1.0), *(replace(gpu, seconds=s) for s in (1.0, 2.0, 9.0))]
    text = rendered(rows, tmp_path)
    assert "| 8 | 55 | 2525 (45.9) |" in text


def test_sequences_of_a_study(tmp_path):
    rng = np.random.default_rng(1)
    texts = [random_text(rng, 20) for _ in range(5)]
    path = tmp_path / "some.fa"
    path.write_text("".join(f">{i}\n{text}\n" for i, text in enumerate(texts)))
    made, number = Source(path, 2, both_strands=True).read(2)
    assert number == 4
    assert [made.text(i) for i in (0, 1)] == [texts[0] + texts[1], texts[2] + texts[3]]
    flipped = texts[0].translate(str.maketrans("ACGT", "TGCA"))[::-1]
    assert made.text(2).endswith(flipped)
    assert len(made) == len(set(made.names)) == 4
    some = sequence_set(texts)
    assert [joined(some, 1).text(i) for i in range(5)] == texts
    assert with_other_strands(some).names[5] == "1-"
    one, same, other = (motif_sources.random_sequences(3, 40, seed).codes.tolist() for seed in (1, 1, 2))
    assert one == same != other
    assert len(kmers([motif_sources.random_sequences(1, 40, 1).text(0)], 8)) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parts": ["figures"]}, "--parts 'figures': choose construction"),
        ({"parts": ["settings"]}, "without a GPU only construction"),
        ({"parts": ["speedup"], "lengths_of_kmers": [40]}, "k = 40"),
        ({"parts": ["construction"], "lengths_of_kmers": [22]}, "encoding 3x64 holds 21"),
    ],
)
def test_what_cannot_be_measured(options, message):
    with pytest.raises(InputError, match=message):
        measured(**options)
