"""hpcvdj.chance.dealing: what ranks read, table by table, is what one reading of all tables has."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from hpcvdj.chance.dealing import deal, hashes_of, owners, shared_out
from hpcvdj.chance.parts import Part
from hpcvdj.cohorts.holding import Holding
from hpcvdj.recombination.selection import SelectionFactor
from hpcvdj.repertoires.genes import amino_acids, by_gene
from hpcvdj.repertoires.inputs import Inputs, read_table, tables_of
from hpcvdj.repertoires.junctions import Junctions
from hpcvdj.repertoires.reading import productive_reading
from hpcvdj.repertoires.table import Table
from hpcvdj.repertoires.tally import tally_of
from hpcvdj.runs.inputs import surveyed
from hpcvdj.runs.run import Run
from tests.cohorts.drawn import drawn
from tests.dealt import dealt_of

CYS, PHE = "TGT", "TTT"


def written(folder, tables):
    """Tables as files: rows are repertoire_id, sequence_id, v_call, junction, duplicate_count."""
    folder.mkdir()
    for name, rows in tables.items():
        lines = ["repertoire_id\tsequence_id\tv_call\tj_call\tjunction\tduplicate_count"]
        lines += [f"{of}\t{own}\t{v}\tTRBJ1-1\t{junction}\t{reads}" for of, own, v, junction, reads in rows]
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    return folder


def both(folder, model):
    """The rows of a folder, dealt, and as they are read at once."""
    reading = productive_reading(reads=True)
    inputs = surveyed(tables_of([folder], reading), Run())
    return deal(inputs, model, Run()), inputs.read(model)


def contents(part, samples):
    """The rows of a part, as a sorted list."""
    own = part.repertoire
    pairs = np.repeat(np.arange(len(own.pairs)), np.diff(own.offsets))
    every = part.reads if part.reads is not None else np.zeros(len(part), dtype=np.int64)
    return sorted(
        (int(row), samples[sample], int(reads), tuple(allele.allele for allele in own.pairs[pair]), own.cdr3(k))
        for k, (row, sample, reads, pair) in enumerate(zip(part.row, part.sample, every, pairs, strict=True))
    )


def rows_of(dealt):
    """All rows that were dealt to a rank."""
    return Part.joined(dealt.parts)


def assert_same(dealt, read: Junctions, model):
    at_once = dealt_of(read, model)
    assert dealt.samples == at_once.samples == read.repertoire_ids
    assert contents(rows_of(dealt), dealt.samples) == contents(rows_of(at_once), at_once.samples)
    assert (dealt.parts[0].reads is None) == (at_once.parts[0].reads is None) == (read.reads is None)
    assert dealt.left_out == at_once.left_out
    of_read = Counter(
        (sample, read.excluded.exclusions[code].summary)
        for sample, code in zip(read.excluded.repertoire_id, read.excluded.code.tolist(), strict=True)
    )
    assert dealt.left_out == of_read
    told, expected = dealt.tally, tally_of(read)
    assert (told.rows_read, told.counted, told.excluded) == (expected.rows_read, expected.counted, expected.excluded)
    assert sorted(told.substituted) == sorted(expected.substituted)


BODIES = [f"GCC{codon}AAT" for codon in ("AAA", "ACC", "GGG", "CAT", "TTA", "CCC")]
STOP = "TGTTAATTT"
GOOD = [CYS + body + PHE for body in BODIES]


def test_tables_with_all_kinds_of_rows(model, tmp_path):
    rows = {
        "a": [
            ("a", "1", "TRBV12-3", GOOD[0], 5),
            ("a", "2", "TRBV99", GOOD[1], 5),
            ("a", "3", "TRBV9", "TGTTAATTT", 2),
        ],
        "b": [("b", "1", "TRBV12-3", GOOD[0], 7), ("b", "1", "TRBV12-3", GOOD[2], 7), ("", "4", "TRBV9", GOOD[3], 1)],
        "c": [],
        "d": [("d", "9", "TRBV9*01", GOOD[4], 3), ("d", "8", "TRBV20-1", GOOD[5], "x")],
    }
    dealt, read = both(written(tmp_path / "in", rows), model)
    assert_same(dealt, read, model)
    assert dealt.whole.reads is not None
    assert len(rows_of(dealt)) == 4
    assert sum(dealt.left_out.values()) == 4


def test_rows_without_a_count_beside_others_with_one(model, tmp_path):
    """What a table alone does not say, the others decide."""
    rows = {
        name: [(name, str(k), "TRBV9", GOOD[k], reads) for k in range(number)]
        for name, number, reads in (("a", 2, ""), ("b", 4, 4))
    }
    dealt, read = both(written(tmp_path / "in", rows), model)
    assert_same(dealt, read, model)
    assert dealt.left_out == {("a", "no duplicate_count, which other rows have"): 2}
    without = {name: [(*row[:4], "") for row in own] for name, own in rows.items()}
    dealt, read = both(written(tmp_path / "without", without), model)
    assert_same(dealt, read, model)
    assert dealt.whole.reads is None
    assert len(rows_of(dealt)) == 6


def test_one_row_with_a_count_decides(model, tmp_path):
    rows = {"a": [("a", "1", "TRBV9", GOOD[0], 5), *[("a", str(k), "TRBV98", GOOD[k], "") for k in (2, 3)]],
            "b": [("b", str(k), f"TRBV{97 + k}", GOOD[k], 1) for k in range(3)]}  # fmt: skip
    dealt, read = both(written(tmp_path / "in", rows), model)
    assert_same(dealt, read, model)
    assert dealt.whole.reads is not None
    assert sorted(dealt.left_out.values()) == [2, 3]


def test_ranks_read_about_as_many_rows():
    tables = [Table(Path(f"{k}"), rows=rows, first_row=k, repertoires={f"r{k}": rows})
              for k, rows in enumerate([10, 900, 20, 500, 400, 30])]  # fmt: skip
    own = shared_out([[table] for table in tables], 2)
    assert [sum(table.rows for unit in units for table in unit) for units in own] == [930, 930]
    assert [[[table.rows for table in unit] for unit in units] for units in own] == [
        [[900], [30]], [[500], [400], [20], [10]],
    ]  # fmt: skip


def test_a_table_without_the_column_of_counts(model, tmp_path):
    """Then no counts are read, of other tables neither."""
    rows = {name: [(name, str(k), "TRBV9", GOOD[k], 4) for k in range(3)] for name in "ab"}
    folder = written(tmp_path / "in", rows)
    lines = (folder / "b.tsv").read_text().splitlines()
    (folder / "b.tsv").write_text("\n".join(line.rpartition("\t")[0] for line in lines) + "\n")
    dealt, read = both(folder, model)
    assert_same(dealt, read, model)
    assert dealt.whole.reads is None
    assert len(rows_of(dealt)) == 6


def test_an_id_repeats_in_another_table_of_its_repertoire(model, tmp_path):
    """Tables between two of one repertoire are read with them."""
    rows = {
        "a": [("x", "1", "TRBV9", GOOD[0], 1)],
        "b": [("y", "1", "TRBV9", GOOD[1], 1)],
        "c": [("x", "1", "TRBV9", GOOD[2], 1), ("x", "2", "TRBV9", GOOD[3], 1)],
        "d": [("z", "1", "TRBV9", GOOD[4], 1)],
    }
    dealt, read = both(written(tmp_path / "in", rows), model)
    assert_same(dealt, read, model)
    assert len(rows_of(dealt)) == 4
    assert list(dealt.left_out.values()) == [1]


def test_what_is_drawn_in_many_tables(model, tmp_path):
    every = drawn(model, 600, 5).to_pylist()
    rows = {
        f"t{k}": [
            (f"t{k}", row["sequence_id"], row["v_call"], row["junction"], n % 7 + 1) for n, row in enumerate(part)
        ]
        for k, part in enumerate((every[:10], every[10:300], every[300:]))
    }
    dealt, read = both(written(tmp_path / "in", rows), model)
    assert_same(dealt, read, model)


def test_all_that_is_compared_is_on_one_rank(model):
    """Whatever the bases, the genes, and the letters in which junctions are read."""
    table = drawn(model, 3_000, 6)
    own = by_gene(read_table(table, model, productive_reading()).repertoire, model)[0]
    letters, lengths = amino_acids(own, np.arange(len(own)))
    texts = [bytes(row[:length]).decode() for row, length in zip(letters, lengths.tolist(), strict=True)]
    ranks = owners(own, 5)
    of_text: dict[str, set[int]] = {}
    for text, rank in zip(texts, ranks.tolist(), strict=True):
        of_text.setdefault(text, set()).add(rank)
    assert any(texts.count(text) > 1 for text in list(of_text)[:500])
    assert all(len(own) == 1 for own in of_text.values())
    assert np.bincount(ranks, minlength=5).min() > len(ranks) / 6
    in_amino_acids = productive_reading(["junction_aa"])
    read = by_gene(read_table(table, model, in_amino_acids).repertoire, model)[0]
    assert sorted(owners(read, 5).tolist()) == sorted(ranks.tolist())
    blocks: dict[tuple[int, int], set[int]] = {}
    pairs = np.repeat(np.arange(len(own.pairs)), np.diff(own.offsets)).tolist()
    for pair, length, rank in zip(pairs, own.lengths.tolist(), owners(own, 5, "block").tolist(), strict=True):
        blocks.setdefault((pair, length), set()).add(rank)
    assert all(len(ranks) == 1 for ranks in blocks.values())
    assert len(set.union(*blocks.values())) == 5
    # Zeros after the letters do not count.
    wider = np.pad(letters, ((0, 0), (0, 8)))
    assert np.array_equal(hashes_of(wider, lengths), hashes_of(letters, lengths))


def test_parts_are_joined_by_gene(model):
    own = by_gene(read_table(drawn(model, 500, 7), model, productive_reading()).repertoire, model)[0]
    number = np.arange(len(own))
    whole = Part(own, (number % 3).astype(np.uint8), number, number + 1)
    parts = [whole.only(np.flatnonzero(number % 4 == k)) for k in (2, 0, 3, 1)]
    joined = Part.joined(parts)
    assert contents(joined, "abc") == contents(whole, "abc")
    assert [pair[0].allele for pair in joined.repertoire.pairs] == [pair[0].allele for pair in own.pairs]


def test_who_has_what_of_many_sequences_and_individuals():
    """Their product needs 64 bits, also where the numbers of sequences have 32."""
    last = 3_000_000
    sequence, individual = np.array([last, 0, last, last], dtype=np.int32), np.array([999, 7, 3, 999])
    has = Holding.of(sequence, individual, last + 1, 1_000, np.array([1, 2, 3, 250], dtype=np.uint8), np.add)
    assert has.individual.tolist() == [7, 3, 999]
    assert has.sequence.tolist() == [0, last, last]
    assert has.reads is not None
    assert has.reads.tolist() == [2, 3, 251]


def test_a_run_that_keeps_rows_reads_each_table_once(model, tmp_path, monkeypatch):
    rows = {
        "a": [("a", str(k), "TRBV9", junction, k + 1) for k, junction in enumerate([*GOOD, STOP])],
        "b": [("b", str(k), "TRBV9", junction, "x" if k == 2 else 1) for k, junction in enumerate(GOOD)],
        "c": [("c", str(k), "TRBV9", junction, "" if k == 1 else 1) for k, junction in enumerate(GOOD)],
    }
    folder = written(tmp_path / "in", rows)
    read: list[str] = []
    of_file = Inputs.read

    def counting(inputs, *arguments, **options):
        read.extend(table.path.stem for table in inputs.tables)
        return of_file(inputs, *arguments, **options)

    run, reading = Run().keeping(), productive_reading(reads=True)
    inputs = surveyed(tables_of([folder], reading), run)
    wanted, without = inputs.read(model), replace(inputs, reading=replace(reading, reads=False))
    monkeypatch.setattr(Inputs, "read", counting)
    for _ in range(2):
        assert_same(deal(inputs, model, run), wanted, model)
    assert sorted(read) == ["a", "b", "c"]
    # Row numbers, selection and other tables beside it change nothing that is read.
    assert all(part.row is None for part in deal(inputs, model, run, numbered=False).parts)
    deal(inputs, replace(model, selection=SelectionFactor({}, 0.0, -1.0, 1.0)), run)
    last = surveyed(tables_of([folder / "c.tsv", folder / "a.tsv"], reading), run)
    dealt = deal(last, model, run.alone())
    assert (dealt.samples, len(read)) == (["c", "a"], 3)
    assert contents(dealt.whole, dealt.samples) == contents(deal(last, model, Run()).whole, dealt.samples)
    # Nor do read counts, unless a row is excluded for want of one.
    read.clear()
    for _ in range(2):
        plain = deal(without, model, run)
        assert (plain.tally.counted, plain.whole.reads) == (3 * len(GOOD), None)
        assert read == ["b", "c"]
    read.clear()
    assert_same(deal(inputs, replace(model, digest="another"), run), wanted, model)
    assert_same(deal(inputs, model, Run()), wanted, model)
    assert len(read) == 6
