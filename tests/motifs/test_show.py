"""`hpcvdj motifs show`: totals are the counters, regions hold every pair of k-mers once."""

import csv
import io
import json

import numpy as np
import pytest

from hpcvdj.cli import motifs
from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.methods import choose
from hpcvdj.kernels.kmers.profile import profile
from hpcvdj.kernels.kmers.sequences import sequence_set
from hpcvdj.motifs import shared
from hpcvdj.motifs.shared import find, shared_kmers
from tests.conftest import SMALL
from tests.motifs.conftest import families

FLIP = str.maketrans("ACGT", "TGCA")

CASES = {
    "families": (families(n=10), 0, 1),
    "other strand": (families(n=10), 0, 4),
    "poly-A": (sequence_set(["A" * 20, "A" * 13 + "C" + "A" * 5]), 0, 1),
    "itself": (sequence_set(["ACGTACGTTTGACCA"]), 0, 0),
    "ambiguous": (sequence_set(["ACGTNACGTACGGT", "NACGTACGTTACGTNN"]), 0, 1),
    "shorter than k": (sequence_set(["ACG", "ACGTACGT"]), 0, 1),
    "of length k": (sequence_set(["ACGTAA", "ACGTAT"]), 0, 1),
    "repeats": (sequence_set(["ACACACACACACGT", "CACACACATACAC"]), 0, 1),
}


def plain_matches(x, y, k, d):
    """{(place in x, place in y): distance} of every pair of k-mers, by two loops."""
    found = {}
    for p in range(len(x) - k + 1):
        for q in range(len(y) - k + 1):
            one, two = x[p : p + k], y[q : q + k]
            distance = sum(a != b for a, b in zip(one, two, strict=True))
            if distance <= d and "N" not in one + two:
                found[p, q] = distance
    return found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("k", "d"), [(6, 2), (4, 0), (5, 3), (4, 1)])
def test_totals_are_the_counters_and_regions_hold_all_pairs(case, k, d):
    some, a, b = CASES[case]
    found = shared_kmers(some, a, b, k, d, strands=2)
    mine = profile(some, k, d)
    for strand, columns in (("+", mine), ("-", mine.reverse_complement())):
        counters = choose("pigeonhole", k, d, "cpu").load(columns).counters(mine)[:, a, b]
        assert list(found.totals[strand]) == counters.tolist()
        x, y = some.text(a), some.text(b)
        y = y if strand == "+" else y.translate(FLIP)[::-1]
        matches = plain_matches(x, y, k, d)
        for region in found.regions:
            if region.strand != strand:
                continue
            p = region.first_a - 1
            q = region.first_b - 1 if strand == "+" else len(y) - region.first_b
            last = region.last_b - 1 if strand == "+" else len(y) - region.last_b
            length = region.last_a - p
            assert region.length == length == last - q + 1 == len(region.text_b)
            assert (region.text_a.upper(), region.text_b.upper()) == (x[p : p + length], y[q : q + length])
            differ = [i for i in range(length) if x[p + i] != y[q + i]]
            assert region.mismatches == len(differ)
            for text in (region.text_a, region.text_b):
                assert [i for i, letter in enumerate(text) if letter.islower()] == differ
            distances = [matches.pop((p + i, q + i)) for i in range(length - k + 1)]
            assert list(region.pairs) == [distances.count(h) for h in range(d + 1)]
            assert region.nearest == min(distances)
            # As long as can be.
            assert (p - 1, q - 1) not in matches
            assert (p + length - k + 1, q + length - k + 1) not in matches
        assert not matches
    assert found.region_count == len(found.regions)
    orders = [(-region.length, region.mismatches, "+-".index(region.strand)) for region in found.regions]
    assert orders == sorted(orders)


def test_the_longest_are_listed_and_memory_is_bounded(monkeypatch):
    rng = np.random.default_rng(2)
    some = sequence_set(["".join(rng.choice(list("ACGT"), 150)) for _ in range(2)])
    whole = shared_kmers(some, 0, 1, 4, 2, strands=2)
    assert whole.region_count > 500
    monkeypatch.setattr(shared, "_WAITING", 30)
    for top in (0, 1, 25):
        part = shared_kmers(some, 0, 1, 4, 2, strands=2, top=top)
        assert part.regions == whole.regions[:top]
        assert (part.totals, part.region_count) == (whole.totals, whole.region_count)


def test_names_go_before_numbers():
    some = sequence_set(["ACGT"] * 3, ["b", "1", "c"])
    assert [find(some, which) for which in ("b", "1", "2", "3")] == [0, 1, 1, 2]
    for wrong in ("0", "4", "-1", "x", ""):
        with pytest.raises(InputError, match="a number from 1 to 3"):
            find(some, wrong)


@pytest.fixture
def fasta(tmp_path):
    path = tmp_path / "two.fasta"
    path.write_text(">one [red]\nTTTTACGTACGTAA\n>[two]\nCCTTACGTACCTTTGG\n")
    return path


def test_people_see_an_alignment(fasta, run):
    text = run(motifs.show, fasta, "one", 2, "-k", 6, "-d", 1, "--strands", "both")
    assert "A          one, 14 bases" in text
    assert "B          [two], 16 bases" in text
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("   1  A"))
    assert lines[at].split()[-1] == "tTTACGTACgT"
    assert lines[at + 2].split()[-2:] == ["2", "cTTACGTACcT"]
    assert lines[at + 1].count("|") == 9
    assert lines[at + 1].index("|") == lines[at].index("TTACG")


def test_programs_read_the_same(fasta, run):
    options = (fasta, "1", "[two]", "-k", 6, "-d", 1, "--strands", "both", "--output-format")
    facts = json.loads(run(motifs.show, *options, "json"))
    rows = list(csv.DictReader(io.StringIO(run(motifs.show, *options, "tsv")), delimiter="\t"))
    assert [sequence["name"] for sequence in facts["sequences"]] == ["one", "[two]"]
    assert facts["found"] == len(facts["regions"]) == len(rows) > 1
    for region, row in zip(facts["regions"], rows, strict=True):
        assert [int(row["first_a"]), int(row["last_a"])] == region["a"]
        assert [int(row["first_b"]), int(row["last_b"])] == region["b"]
        assert [int(row["d0"]), int(row["d1"])] == region["pairs"]
        assert (row["text_a"], row["text_b"], row["strand"]) == (region["text_a"], region["text_b"], region["strand"])
        assert (region["b"][0] > region["b"][1]) == (region["strand"] == "-")
    sums = {strand: [0, 0] for strand in "+-"}
    for row in rows:
        for h in (0, 1):
            sums[row["strand"]][h] += int(row[f"d{h}"])
    assert sums == facts["totals"]
    assert len(json.loads(run(motifs.show, *options, "json", "--list", 1))["regions"]) == 1


def test_junctions_of_a_table(run):
    text = run(motifs.show, SMALL, "insilico_0", "insilico_1", "-k", 8)
    assert "A          insilico_0, 51 bases" in text


def test_nothing_in_common_and_wrong_usage(fasta, run):
    text = run(motifs.show, fasta, 1, 2, "-k", 14, "-d", 0)
    assert "0 at distance 0" in text
    assert "regions    0, listed 0" in text
    with pytest.raises(InputError, match=r"two\.fasta: no sequence is called 'three'"):
        run(motifs.show, fasta, 1, "three", "-k", 6)
    with pytest.raises(InputError, match="-k 3: give a number from 4 to 32"):
        run(motifs.show, fasta, 1, 2, "-k", 3)
    with pytest.raises(InputError, match="-d 4: give a number from 0 to 3"):
        run(motifs.show, fasta, 1, 2, "-k", 8, "-d", 4)
