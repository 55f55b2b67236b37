"""Do clusters join receptors of one epitope?  Sorted T cells of mice (Dash et al., Nature 547, 2017).

python benchmarks/sorted_cells.py --table TABLE --output results/enrich/sorted_cells.csv

TABLE is an AIRR table of mouse TRB in which rows of one mouse that follow each other are one sample: cells of one
epitope.  It does not name the epitopes, so clusters are judged by pairs of junctions of one mouse: both of one sample,
or of two.  Precision is the share of pairs in a cluster that are of one sample, beside that of all pairs of a mouse;
recall is the share of the pairs of one sample that are in a cluster.  Needs olga's model of mouse TRB.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from _common import record

import hpcvdj
from hpcvdj.enrichment.statistics import clusters

MODEL = "mouse_trb"
K, D, SMALLEST_SCORE = 15, 1, 0.6
"""Of the comparison by motifs; not tuned."""

CLONOTYPE = ["v_gene", "j_gene", "junction_aa"]


def table_at(path: str) -> pd.DataFrame:
    """Its rows with a number for each sample; a junction of a sample once."""
    table = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False).query("productive == 'T'")
    table["sample"] = (table["repertoire_id"] != table["repertoire_id"].shift()).cumsum()
    for segment in "vj":
        table[f"{segment}_gene"] = table[f"{segment}_call"].str.partition("*")[0]
    return table.drop_duplicates(["sample", "v_gene", "j_gene", "junction"]).reset_index(drop=True)


def pairs(samples: Any, mice: Any) -> tuple[int, int]:
    """Pairs of rows of one mouse: of one sample, of two."""
    one_sample = pd.Series(samples).value_counts().to_numpy()
    one_mouse = pd.Series(mice).value_counts().to_numpy()
    same, all_pairs = (int((sizes * (sizes - 1) // 2).sum()) for sizes in (one_sample, one_mouse))
    return same, all_pairs - same


def judged(table: pd.DataFrame, cluster: pd.Series, **known: Any) -> dict[str, Any]:
    """A row of the results; `cluster` is 0 for rows in none."""
    all_same, all_other = pairs(table["sample"], table["repertoire_id"])
    inside = table[cluster.to_numpy() > 0].assign(cluster=cluster[cluster > 0])
    found = [pairs(part["sample"], part["repertoire_id"]) for _, part in inside.groupby("cluster")]
    same, other = (sum(counts) for counts in zip(*found, strict=True)) if found else (0, 0)
    return {
        "rows_in_clusters": len(inside), "clusters": inside["cluster"].nunique(), "pairs_of_one_sample": same,
        "pairs_of_two_samples": other, "precision": f"{same / max(same + other, 1):.3f}",
        "precision_of_all_pairs": f"{all_same / (all_same + all_other):.3f}", "recall": f"{same / all_same:.3f}",
    } | known  # fmt: skip


def by_enrich(table: pd.DataFrame, **options: Any) -> dict[str, Any]:
    """Of the clusters of hits."""
    given = table.assign(duplicate_count=1).drop(columns=["repertoire_id"])
    found = hpcvdj.enrich(given, MODEL, likely_errors=True, backend="cpu", **options)
    hits = found.table.select(["v_call", "j_call", "junction_aa", "cluster"]).to_pandas().dropna()
    hits.columns = [*CLONOTYPE, "cluster"]
    cluster = table.merge(hits, "left", CLONOTYPE)["cluster"].fillna(0).astype(int)
    return judged(table, cluster, kappa=found.kappa, hits=found.hits, clonotypes=found.clonotypes)


def by_single_exchanges(table: pd.DataFrame) -> pd.Series:
    """Clusters of all clonotypes that single exchanges connect, of two or more clonotypes, tested or not."""
    different = table.drop_duplicates(CLONOTYPE)[CLONOTYPE].reset_index(drop=True)
    lengths = different["junction_aa"].str.len().to_numpy()
    letters = np.array([list(text.encode().ljust(lengths.max(), b"\0")) for text in different["junction_aa"]], np.uint8)
    label = clusters(letters, lengths, different.groupby(["v_gene", "j_gene"]).ngroup().to_numpy())
    different["cluster"] = np.where(np.bincount(label)[label] > 1, label, 0)
    return table.merge(different, "left", CLONOTYPE)["cluster"]


def by_motifs(table: pd.DataFrame) -> pd.Series:
    """Clusters of `hpcvdj motifs cluster`, of distinct junctions."""
    texts = table["junction"].drop_duplicates().tolist()
    with hpcvdj.motifs.compare(texts, k=K, d=D, min_score=SMALLEST_SCORE, backend="cpu") as result:
        found = hpcvdj.motifs.cluster(result).to_pandas()
    own = dict(zip((texts[int(name) - 1] for name in found["name"]), found["cluster"], strict=True))
    return table["junction"].map(own).fillna(0).astype(int)


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Each way of making clusters."""
    warnings.simplefilter("ignore", hpcvdj.HpcvdjWarning)
    table = table_at(options.table)
    yield {"clusters_of": "enrich, kappa estimated"} | by_enrich(table)
    for kappa in (1.0, 4.0):
        yield {"clusters_of": f"enrich, kappa {kappa:g}"} | by_enrich(table, kappa=kappa)
    control = hpcvdj.generate(MODEL, 200_000, seed=1, productive=True)
    yield {"clusters_of": "enrich, control of drawn junctions"} | by_enrich(table, control=control)
    yield {"clusters_of": "all single exchanges"} | judged(table, by_single_exchanges(table))
    yield {"clusters_of": f"motifs, k {K}, d {D}, score {SMALLEST_SCORE}"} | judged(table, by_motifs(table))


if __name__ == "__main__":
    record(__doc__, measured, table=("dash.tsv", "AIRR table, described above"))
