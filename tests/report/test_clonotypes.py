"""hpcvdj.reports.clonotypes: the list is that of a sort of all clonotypes."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hpcvdj.reports import clonotypes, elements
from hpcvdj.runs.run import Run

KEYS = ["v", "j", "aa"]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@dataclass(eq=False)
class Surveyed:
    """What the list needs of a survey."""

    path: Path
    samples: list[str]
    listed: str
    clonotypes: pa.Table
    command: str = "pgen"


def surveyed(rng, score, samples):
    """A survey of few different sequences, so that samples share them and some have several nucleotide variants."""
    count = 400
    frame = pd.DataFrame({
        "sample": rng.integers(0, len(samples), count), "v": rng.choice(["V1", "V2"], count),
        "j": rng.choice(["J1", "J2"], count), "aa": rng.choice([*"ABCDEFGHIJKLMNOPQRST"], count),
        "variant": rng.integers(0, 3, count), "rows": rng.integers(1, 4, count), score: rng.random(count),
    })  # fmt: skip
    frame["cdr3"] = frame["aa"] + frame.pop("variant").astype(str)
    frame = frame.drop_duplicates(["sample", "v", "j", "cdr3"])
    return Surveyed(Path("".join(samples)), samples, score, pa.Table.from_pandas(frame, preserve_index=False))


def found_by(surveys, run):
    """The clonotypes of all files, of which each rank has read some."""
    own = {survey.path: survey.clonotypes for survey in surveys[run.rank :: run.ranks]}
    return clonotypes.clonotypes_of(surveys if run.is_root else None, own, run)


def expected(surveys, score):
    """All clonotypes, in their order."""
    parts = [
        part.clonotypes.to_pandas().assign(sample=lambda own, part=part: [part.samples[k] for k in own["sample"]])
        for part in surveys
    ]
    frame = pd.concat(parts)
    of_variant = frame.groupby([*KEYS, "cdr3"])[score].max().groupby(KEYS)
    value = of_variant.max() if score == "pgen_aa" else of_variant.sum()
    found = pd.DataFrame({
        "n_samples": frame.groupby(KEYS)["sample"].nunique(), "nt_variants": frame.groupby(KEYS)["cdr3"].nunique(),
        "rows": frame.groupby(KEYS)["rows"].sum(), "value": value,
    })  # fmt: skip
    by = ["n_samples", "nt_variants", "value", *KEYS]
    return found.reset_index().sort_values(by, ascending=[False] * 3 + [True] * 3)[[*KEYS, *found.columns]]


@pytest.mark.parametrize("score", ["weight", "pgen_nt", "pgen_aa"])
@pytest.mark.parametrize("most", [3, 1000])
def test_the_list_is_the_first_of_all(rng, monkeypatch, score, most):
    for module in (clonotypes, elements):
        monkeypatch.setattr(module, "MOST_LISTED", most)
    names = [["a", "b"], ["c"], ["a", "d", "e"], ["f", "g", "h", "i"]]
    surveys = [surveyed(rng, score, samples) for samples in names]
    found = found_by(surveys, Run())
    listed = clonotypes.listed_clonotypes(found["pgen", score], "pgen", score)
    wanted = expected(surveys, score)
    rows = pd.DataFrame(listed.rows, columns=wanted.columns)
    pd.testing.assert_frame_equal(rows, wanted.head(most).reset_index(drop=True), check_dtype=False)
    titles = {"weight": "weight, sum of the variants", "pgen_nt": "Pgen, sum of the variants"}
    assert [column.title for column in listed.columns[3:]][::3] == ["samples", titles.get(score, "Pgen, amino acids")]
    assert (listed.name, listed.caption) == (f"pgen_clonotypes_{score}", "Amino-acid clonotypes")
    assert len(wanted) > 2 * 3
    if most == 3:
        assert listed.note == (
            f"The first 3 of {len(wanted):,}; all are in the files: group them by V gene, J gene and amino acids."
        )


def test_clonotypes_are_ranked_by_samples_and_spellings():
    keys, spelled = (np.array(numbers, np.uint64) for numbers in ([5, 9, 5, 7, 9, 9], [1, 1, 1, 1, 2, 3]))
    distinct, rank = clonotypes._ranked(keys, spelled, np.array([0, 0, 1, 0, 0, 0], np.int32))
    assert dict(zip(distinct.tolist(), rank.tolist(), strict=True)) == {5: 2 << 32 | 1, 7: 1 << 32 | 1, 9: 1 << 32 | 3}


def test_files_of_other_commands_and_scores_have_lists_of_their_own(rng):
    surveys = [surveyed(rng, "pgen_nt", ["a"]), surveyed(rng, "weight", ["b"]), surveyed(rng, "weight", ["c"])]
    surveys[1].command = surveys[2].command = "count"
    surveys.append(replace(surveyed(rng, "pgen_nt", ["d"]), listed=""))
    found = found_by(surveys, Run())
    assert {group: len(set(part.rows["sample"].to_pylist())) for group, part in found.items()} == {
        ("pgen", "pgen_nt"): 1, ("count", "weight"): 2,
    }  # fmt: skip


def test_few_rows_go_through_the_exact_sort(rng, monkeypatch):
    monkeypatch.setattr(clonotypes, "MOST_LISTED", 3)
    surveys = [surveyed(rng, "weight", ["a", "b"]) for _ in range(3)]
    # Few rows of each, so that few clonotypes are in both samples.
    parts = [part.clonotypes.slice(0, 40) for part in surveys]
    number, kept = clonotypes._chosen(parts, Run())
    frame = pd.concat([part.to_pandas() for part in parts])
    ranks = frame.groupby(KEYS).agg(samples=("sample", "nunique"), variants=("cdr3", "nunique"))
    assert number == len(ranks)
    # Those that are as good as number 2 * MOST_LISTED, since the others cannot be listed.
    ordered = sorted(map(tuple, ranks.to_numpy().tolist()), reverse=True)
    as_good = {key for key, own in ranks.iterrows() if tuple(own) >= ordered[5]}
    assert {tuple(row[key] for key in KEYS) for part in kept for row in part.to_pylist()} == as_good
    assert sum(map(len, kept)) < sum(map(len, parts)) / 2
    exactly = [part.slice(0, 0) for part in parts[1:]] + [parts[0].slice(0, 6)]
    assert [len(part) for part in clonotypes._chosen(exactly, Run())[1]] == [0, 0, 6], "so few are all kept"
