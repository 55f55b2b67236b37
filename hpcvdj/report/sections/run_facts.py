"""How a result was counted, and in what time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from hpcvdj.report.elements import Block, Section, Table
from hpcvdj.report.survey import Survey


def run_facts(surveys: list[Survey]) -> Section:
    return Section("run", "How it was counted", [Block(tables=[_facts(surveys), *_times(surveys)])])


def _facts(surveys: list[Survey]) -> Table:
    columns = [_facts_of(one) for one in surveys]
    keys = list(dict.fromkeys(key for column in columns for key in column))
    rows = [[key, *(column.get(key, "–") for column in columns)] for key in keys]
    everything = frozenset(range(len(surveys) + 1))
    return Table("Facts of the run, as the result file records them", ["", *(s.name for s in surveys)], rows,
                 everything, wrap=everything - {0})  # fmt: skip


def _facts_of(one: Survey) -> dict[str, str]:
    facts = one.facts
    config = json.loads(facts.get("config", "{}"))
    calls = config.get("calls", {})
    hardware = Counter(rank.get("hardware", "").partition(", device ")[0] for rank in one.ranks)
    software = list(dict.fromkeys(rank.get("software", "") for rank in one.ranks))
    hosts = list(dict.fromkeys(rank.get("host", "") for rank in one.ranks))
    gpus = [rank["hardware"] for rank in one.ranks if ", device " in rank.get("hardware", "")]
    libraries = [f"{key.removeprefix('version_')} {facts[key]}" for key in facts if key.startswith("version_")]
    read = facts.get("junctions_sha256", "")
    found = {
        "result file": str(one.path.name),
        "counted by": f"hpcvdj {facts.get('hpcvdj_version', '?')}",
        "counting ended (UTC)": str(facts.get("created_utc", "")),
        "command line": str(facts.get("command_line", "")),
        "method": f"{config.get('method', '?')}, backend asked for: {config.get('backend', '?')}",
        "n-lengths": f"0–{one.max_n} (asked for: {config.get('max_n_asked', one.max_n)})",
        "D forms": f"{config.get('d_forms', '?')}; D alleles: {facts.get('d_alleles', '?')}",
        "P-nucleotides at an end, at most": str(facts.get("max_p", "?")),
        "field read": str(facts.get("sequence_field", "?")),
        "ambiguous calls, unlisted alleles": f"{calls.get('ambiguous', '?')}, {calls.get('unlisted', '?')}",
        "calls replaced": _replaced(facts),
        "ranks": f"{len(one.ranks)} on {len(hosts)} {'host' if len(hosts) == 1 else 'hosts'}",
        "GPUs": str(len(set(gpus))) if gpus else "none",
        "hardware": "; ".join(f"{count} × {name}" for name, count in hardware.items()),
        "kernels": "; ".join(software),
        "hosts": _few(hosts),
        "MPI library": str(facts.get("mpi_library", "")),
        "parts": str(facts["parts"]) if "parts" in facts else "one file",
        "junctions": f"{one.tables:,} tables in " * bool(one.tables) + str(facts.get("junctions_path", "")),
        f"junctions, SHA-256 of the {'list of tables' if one.tables else 'file'}": str(read),
        "germline": str(facts.get("germline_path", "")),
        "germline, SHA-256 of its segments": str(facts.get("germline_sha256", "")),
        "Python, platform": f"{facts.get('python', '?')}, {facts.get('platform', '?')}",
        "libraries": ", ".join(libraries),
        "user": str(facts.get("user", "")),
        "Slurm job": str(facts.get("slurm_job_id", "")) or "none",
    }
    return {key: value or "–" for key, value in found.items()}


def _replaced(facts: dict[str, Any]) -> str:
    calls = json.loads(facts.get("substituted_calls", "[]"))
    return _few([f"{call} → {allele} ({int(rows):,} rows)" for call, allele, rows in calls]) if calls else "none"


def _few(texts: Sequence[str], most: int = 8) -> str:
    rest = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def _times(surveys: list[Survey]) -> list[Table]:
    tables = []
    for one in surveys:
        times = one.timings
        if not len(times.get("n_first", [])):
            continue
        rows = []
        for first, stop in sorted({(int(a), int(b)) for a, b in zip(times["n_first"], times["n_stop"], strict=True)}):
            chosen = (times["n_first"] == first) & (times["n_stop"] == stop)
            label = str(first) if stop == first + 1 else f"{first}–{stop - 1}"
            rows.append([label, f"{int(chosen.sum()):,}", *(
                _seconds(float(times[f"{name}_seconds"][chosen].sum())) for name in ("kernel", "reduce", "wall")
            )])  # fmt: skip
        ranks = times.get("rank_kernel_seconds", np.zeros(0))
        spread = (
            f"; time in the kernel by rank: {_seconds(ranks.min())} to {_seconds(ranks.max())} s" if len(ranks) else ""
        )
        tables.append(
            Table(
                f"Seconds by stage, {one.name}: each unit of work by its slowest rank, summed over units{spread}",
                ["n-lengths", "units", "kernel, s", "combining the ranks’ counters, s", "in all, storing included, s"],
                rows,
            )
        )
    return tables


def _seconds(value: float) -> str:
    if 0 < value < 0.001:
        return "< 0.001"
    return f"{value:,.1f}" if value >= 100 else f"{value:.3g}"
