"""Small outputs as the documentation describes them: of `sharing`, `contamination`, `associate`, `associate --time`,
`enrich` and `annotate`."""

import itertools
import json

import numpy as np
import pyarrow as pa

from hpcvdj.repertoires.writers import write_table

NAMES = ["donor1", "donor2", "donor3", "donor4"]
GROUPS = ["patients", "patients", "controls", "controls"]


def written(path, facts, rows):
    """A table and the .json beside it; the path of the table."""
    path.with_name(path.name + ".json").write_text(json.dumps(facts))
    write_table(path, pa.Table.from_pylist(rows).to_batches(), overwrite=True)
    return path


def sharing(path, names=NAMES, groups=GROUPS, hits=12, **facts):
    """A table of `sharing` of individuals, with `hits` sequences."""
    rng = np.random.default_rng(1)
    size = len(names)
    individuals = [
        {"name": name, "group": group, "rows": 1000 + k, "left_out": {"out of frame": 10 * k, "no V call": 1}}
        for k, (name, group) in enumerate(zip(names, groups, strict=True))
    ]
    spectrum = [
        {"individuals": m, "observed": int(4000 / 9 ** (m - 1)), "expected": 3800 / 8 ** (m - 1),
         "low": 3700 / 8 ** (m - 1),
         "high": 3900 / 8 ** (m - 1), "expected_q1": 4100 / 20 ** (m - 1)}
        for m in range(1, size + 1)
    ]  # fmt: skip
    shared = rng.integers(1, 90, (size, size))
    overlap = {"shared": (shared + shared.T).tolist(), "expected": (0.9 * (shared + shared.T)).tolist()}
    rows = [
        {
            "v_call": f"TRBV{6 + k % 3}-1", "j_call": "TRBJ2-1", "junction_aa": f"CASS{'ACDEFGHIKLMN'[k % 12]}SYNEQFF",
            "n_individuals": 2 + k % (size - 1), "individuals": ",".join(names[: 2 + k % (size - 1)]),
            "nt_variants": 1 + k,
            "max_duplicate_count": 10 * k, "pgen": 1e-9 * (k + 1), "p_post": 1e-8 * (k + 1),
            "expected_individuals": 0.01 * (k + 1), "effect": 50.0 / (k + 1), "p_value": 1e-8 * (k + 1),
            "q_value": 1e-4 * (k + 1),
        }
        for k in range(hits)
    ]  # fmt: skip
    known = {
        "command": "sharing", "unit": "vj-aa", "model": "human_trb_m15", "q": 0.603, "q_at_bound": False,
        "q_interval": [0.551, 0.66], "draws": 300000,
        "individuals": individuals, "spectrum": spectrum, "overlap": overlap,
        "auc": {"pgen": [0.91, 0.90, 0.92], "length": [0.7, 0.69, 0.71]}, "tested": 4100, "hits": hits,
    }  # fmt: skip
    return written(path, {**known, **facts}, rows)


def contamination(path, names=NAMES, groups=GROUPS, **facts):
    """A table of `contamination` of individuals, of which the first two share improbable junctions."""
    size = len(names)
    shared = np.full((size, size), 0)
    shared[0, 1] = shared[1, 0] = 440
    shared[1:2, 2:3] = shared[2:3, 1:2] = 3
    individuals = [
        {"name": name, "group": group, "rows": 200_000, "low": 100_000 + k, "zero": 7}
        for k, (name, group) in enumerate(zip(names, groups, strict=True))
    ]
    rows = [
        {
            "individual_1": names[i], "individual_2": names[j], "low_1": 100_000 + i, "low_2": 100_000 + j,
            "shared_low": int(shared[i, j]), "expected_low": 0.9, "rate": shared[i, j] / 1e10,
            "p_value": 1e-300 if shared[i, j] > 100 else 0.9, "q_value": 1e-299 if shared[i, j] > 100 else 1.0,
        }
        for i, j in itertools.combinations(range(size), 2)
    ]  # fmt: skip
    carry_over = [
        {
            "reads": reads,
            "clones": 5000 // (k + 1),
            "met_same_group": 0.0007 * 4**k,
            "met_other_group": 0.0 if k else 1e-5,
        }
        for k, reads in enumerate(["1", "2-3", "4-9", "10-99", ">= 100"])
    ]
    known = {
        "command": "contamination", "max_pgen": 1e-11, "model": "human_trb_m15", "individuals": individuals,
        "rate": (shared / 1e10).tolist(), "shared_low": shared.tolist(), "carry_over": carry_over,
        "standing_out": [[0, 1]],
    }  # fmt: skip
    return written(path, {**known, **facts}, rows)


def association(path, names=NAMES, tested=150, hits=2, inflation=1.05, **facts):
    """A table of `associate` of donors and one phenotype, with `hits` sequences."""
    rows = [
        {
            "phenotype": "disease=MS", "v_call": "TRBV9", "j_call": "TRBJ2-7", "junction_aa": f"CASS{'ACDEF'[k]}EQYF",
            "carriers": 2, "case_carriers": 2, "cases": 2, "control_carriers": 0, "controls": 2, "expected": 0.9,
            "odds_ratio": 9.0, "p_value": 1e-5 * (k + 1), "q_value": 1e-3 * (k + 1) if hits else 0.9,
            "individuals": ",".join(names[:2]),
        }
        for k in range(hits or 1)
    ]  # fmt: skip
    phenotype = {
        "phenotype": "disease=MS", "family": "case", "donors": len(names), "cases": 2, "strata": 1,
        "sequences": tested + 7, "tested": tested, "hits": hits, "hits_weighted": hits, "hits_that_are_copies": 0,
        "inflation": inflation, "donors_in_strata_of_one_value": 0,
        "a_hit_needs": [{"carriers": 4, "cases": 4, "expected": 1.96}, {"carriers": 8, "cases": 7, "expected": 3.9}],
    }  # fmt: skip
    known = {
        "command": "associate", "model": "human_trb_m15", "settings": {"unit": "sequence"},
        "individuals": [{"name": name, "group": None, "rows": 1000, "left_out": {}} for name in names],
        "phenotypes": [phenotype], "sequences": tested + 7, "tested": tested, "hits": hits,
    }  # fmt: skip
    return written(path, {**known, **facts}, rows)


def expansion(path, hits=3, **facts):
    """A table of `associate --time` of a subject with three times, of which the last pair has `hits`."""
    subject, ends, depths = "anna", [[0.0, 1.5], [1.5, 12.0]], [[9000, 5000], [5000, 26_000]]
    cells = [[[k, (k * 5) // 9, 4000 // (k + 1)] for k in range(1, 9)], [[k, 5 * k, 900 // k] for k in range(1, 9)]]
    rows = [
        {
            "subject": subject, "v_call": "TRBV9", "j_call": "TRBJ2-7", "junction": f"TGT{'GCA' * (k + 3)}TTC",
            "junction_aa": f"C{'A' * (k + 3)}F", "time_before": 1.5, "time_after": 12.0, "reads_before": k,
            "reads_after": 400 + k, "depth_before": 5000, "depth_after": 26_000, "expected": 0.8 * (400 + 2 * k),
            "log2_fold_change": 9.0 - k, "log2_fold_change_low": 4.0, "log2_fold_change_high": None if not k else 12.0,
            "p_value": 1e-9 * (k + 1), "q_value": 1e-7 * (k + 1),
        }
        for k in range(hits + 1)
    ]  # fmt: skip
    other = {**rows.pop(), "time_before": 0.0, "time_after": 1.5}
    rows += [{**other, "p_value": p, "q_value": q} for p, q in ((0.01, 0.06), (0.02, None))]
    points = np.logspace(-4, 0, 30)
    known = {
        "command": "associate --time", "asked": {"subject": "who", "time": "month"}, "model": "human_trb_m15",
        "settings": {"max_q": 0.05}, "noise": {"linear": 0.25, "quadratic": 0.31, "pairs_of_replicates": 2},
        "individuals": [{"name": f"s{k}", "group": None, "rows": 3000, "left_out": {"no V call": k}} for k in range(3)],
        "pairs": [
            {"subject": subject, "times": times, "depths": own, "depth_ratio": 0.9 * own[1] / own[0],
             "clonotypes": sum(cell[2] for cell in reads), "tested": 700 + k, "hits": hits * k, "reads": reads}
            for k, (times, own, reads) in enumerate(zip(ends, depths, cells, strict=True))
        ],
        "clonotypes": 12_000, "tested": 1401, "hits": hits, "inflation": 1.02,
        "qq": {name: points.tolist() for name in ("expected", "observed", "low", "high")},
    }  # fmt: skip
    return written(path, {**known, **facts}, rows)


def enrichment(path, sample="donor1", clusters=3, size=6, **facts):
    """A table of `enrich`: stars of clonotypes around a centre, and two that are not hits."""
    rng = np.random.default_rng(len(sample))
    rows = []
    for cluster in range(clusters):
        centre = "".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 12))
        for k in range(size):
            text = centre[: 3 + k] + ("Y" if k else centre[3 + k]) + centre[4 + k :]
            rows.append(_clonotype(f"TRBV{cluster + 2}", text, size - 1, 1e-9 * (1 + len(rows)), cluster + 1))
    rows += [_clonotype("TRBV9", "CASSNOHITF", 2, 0.1, None), _clonotype("TRBV9", "CASSNOHITY", 2, 0.2, None)]
    points = np.logspace(-5, 0, 50)
    qq = {"expected": points, "observed": points**1.3, "low": points * 0.5, "high": np.minimum(1, points * 2)}
    known = {
        "command": "enrich", "command_line": f"hpcvdj enrich {sample}.tsv", "created_utc": "2026-01-01T00:00:00+00:00",
        "tables": [[f"cohort/{sample}.tsv", "0", 3000]], "model": "human_trb_m15", "model_sha256": "b712",
        "settings": {"kappa": None, "max_q": 0.001}, "rows_read": 3000, "rows_excluded": [],
        "rows_left_out": {"junctions that another row has": 40}, "clonotypes": 2960, "tested": len(rows), "kappa": 3.12,
        "kappa_by_length": {"12": 3.0}, "hits": clusters * size, "clusters": clusters,
        "qq": {name: values.tolist() for name, values in qq.items()},
    }  # fmt: skip
    return written(path, {**known, **facts}, rows)


def _clonotype(v, text, neighbours, p, cluster):
    return {
        "v_call": v, "j_call": "TRBJ2-7", "junction_aa": text, "duplicate_count": 12, "nt_variants": 2,
        "neighbours": neighbours, "class_size": 300, "pgen_aa": 1e-9, "pgen_ball": 1e-7, "p_productive_vj": 1e-3,
        "kappa": 3.0, "expected": 0.05, "p_value": p, "q_value": 10 * p, "cluster": cluster,
    }  # fmt: skip


def annotation(path, sample="donor1", hits=9, **facts):
    """The two tables of a sample of `annotate`; the path of that of epitopes, path.epitopes.tsv."""
    rows = [
        {"epitope": f"EPI{k}", "antigen": "M", "organism": "InfluenzaA" if k else "SARS-CoV-2", "mhc": "HLA-A*02:01",
         "records": 20 - k, "decoy": not k, "found": 5 - k, "expected": 2.0, "ratio": (5 - k) / 2, "ratio_low": 0.4,
         "ratio_high": 4.0, "p_value": 0.01 * (k + 1), "q_value": 0.05 * (k + 1), "precursor_frequency": 1e-5}
        for k in range(4)
    ]  # fmt: skip
    of_hits = [
        {"v_call": "TRBV19", "j_call": "TRBJ2-7", "junction_aa": f"CASS{'ACDEFGHIK'[k]}RSSYEQYF", "duplicate_count": 7,
         "nt_variants": 1, "epitope": "EPI1;EPI2", "antigen": "M", "organism": "InfluenzaA", "mhc": "HLA-A*02:01",
         "record": "CASSIRSSYEQYF", "reference": "PMID:1", "distance": 1, "pgen_aa": 1e-9, "p_post": 1e-8,
         "expected": 0.01 * (k + 1), "fdr": 0.02 * (k + 1)}
        for k in range(hits)
    ]  # fmt: skip
    points = np.logspace(-3, 0, 20)
    known = {
        "command": "annotate", "sample": sample, "tables": [[f"cohort/{sample}.tsv", "0", 3000]],
        "model": "human_trb_m15", "model_sha256": "b712", "settings": {"kappa": None, "max_q": 0.05},
        "rows_read": 3000, "rows_excluded": [], "clonotypes": 2960, "found": hits, "expected": 6.2,
        "epitopes_called": 1, "hits_called": 2, "tested": len(rows), "dispersion": 1.25,
        "kappa": {"value": 1.31, "low": 1.1, "high": 1.6, "source": "decoys"},
        "decoys": {"epitopes": 1, "found": 5, "expected": 2.0, "p_below_0.05": 1, "called": 0}, "decoys_passed": True,
        "qq": {name: points.tolist() for name in ("expected", "observed", "low", "high")},
    }  # fmt: skip
    write_table(path.with_name(f"{path.name}.hits.tsv"), pa.Table.from_pylist(of_hits).to_batches(), overwrite=True)
    return written(path.with_name(f"{path.name}.epitopes.tsv"), {**known, **facts}, rows)


def probabilities(path, rows=60, seed=5, samples=(), loci=("TRB",)):
    """A table as of `pgen`: random productive junctions, the first of them twice, and two rows without a value.

    samples  repertoire_id of the rows, in turn
    loci     of the rows, in turn
    """
    rng = np.random.default_rng(seed)
    table = []
    for k in range(rows):
        bases = "".join(rng.choice(["GCT", "GCC", "AGT", "TCA"], 1 + k % 12))
        table.append({
            "sequence_id": f"s{k}", "v_call": f"{loci[k % len(loci)]}V{1 + k % 3}*01",
            "j_call": f"{loci[k % len(loci)]}J2-7*01",
            "junction": f"TGT{bases}TTC",
            "pgen_nt": 0.0 if k == 7 else 10.0 ** -(5 + k % 12), "pgen_aa": 10.0 ** -(4 + k % 12), "pgen_excluded": "",
        })  # fmt: skip
    table.append({**table[0], "sequence_id": "again"})
    table += [{**table[1], "pgen_nt": None, "pgen_aa": None, "pgen_excluded": "no V call"} for _ in range(2)]
    if samples:
        table = [{**row, "repertoire_id": samples[k % len(samples)]} for k, row in enumerate(table)]
    write_table(path, pa.Table.from_pylist(table).to_batches(), overwrite=True)
    return path
