"""The thesis's figures 5 to 9, from raw rows (section 5)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from hpcvdj.plotting import pyplot
from hpcvdj.studies.measuring import commands, read
from hpcvdj.studies.motif_tables_runs import TableRow


def render(folder: Path) -> str:
    """Make README.md and plots of a study from its raw rows; returns the Markdown."""
    rows, facts = read(folder, TableRow)
    parts = {part: [row for row in rows if row.part == part] for part in dict.fromkeys(row.part for row in rows)}
    text = [
        f"# The thesis's hash tables\n\nOn {' and '.join(sorted({row.hardware for row in rows}))}, "
        f"{rows[0].cores} CPU threads. Made from the raw rows by `hpcvdj study render`.",
        f"Sums of all counters of what was compared alike: **{'identical' if totals_identical(rows) else 'DIFFERENT'}**"
        " for every kernel and setting.",
    ]
    for part, section in (
        ("construction", _construction), ("settings", _settings), ("speedup", _speedup), ("lengths", _speedup),
    ):  # fmt: skip
        if parts.get(part):
            text.append(section(parts[part], folder / f"{part}.png"))
    text.append(commands(facts))
    whole = "\n\n".join(text)
    (folder / "README.md").write_text(whole + "\n")
    return whole


def totals_identical(rows: Iterable[TableRow]) -> bool:
    """Whether all that compared the same sequences found the same sum."""
    found: dict[tuple[int, ...], set[int]] = {}
    for row in rows:
        if row.pairs:
            found.setdefault((row.k, row.d, row.length, row.sequences, row.of), set()).add(row.total)
    return all(len(values) == 1 for values in found.values())


def medians(rows: Iterable[TableRow], *by: str) -> dict[tuple[Any, ...], float]:
    """Median seconds of the repeats of each combination of the columns `by`, in order of appearance."""
    grouped: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        grouped.setdefault(tuple(getattr(row, name) for name in by), []).append(row.seconds)
    return {key: median(values) for key, values in grouped.items()}


def _numbers(rows: list[TableRow]) -> str:
    """How many sequences, marked when they are not all."""
    taken = sorted(
        {(row.sequences, row.of) for row in rows if row.kernel != "cpu"} or {(rows[0].sequences, rows[0].of)}
    )
    said = ", ".join(f"n = {n:,}" + ("" if n == of else f" (of {of:,})") for n, of in taken)
    lengths = sorted({row.length for row in rows})
    return f"{said}, up to {', '.join(map(str, lengths))} bases, d = {rows[0].d}"


def _table(head: list[str], lines: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])


def _construction(rows: list[TableRow], path: Path) -> str:
    """Figure 5."""
    seconds = medians(rows, "hash", "k", "buckets")
    scatter = {(row.hash, row.k, row.buckets): row.variance / row.mean for row in rows if row.mean}
    hashes, ks = (list(dict.fromkeys(getattr(row, name) for row in rows)) for name in ("hash", "k"))
    counts = sorted({row.buckets for row in rows})
    lines = [
        [str(buckets)]
        + [
            f"{seconds[name, k, buckets]:.3g} ({scatter.get((name, k, buckets), 0):.2f})"
            if (name, k, buckets) in seconds
            else "-"
            for name in hashes
            for k in ks
        ]
        for buckets in counts
    ]
    plt = pyplot()
    figure, axes = plt.subplots(2, len(hashes), figsize=(4 * len(hashes), 6), layout="constrained", squeeze=False)
    for column, name in enumerate(hashes):
        for row, (values, label) in enumerate(((seconds, "seconds"), (scatter, "variance / mean of a bucket"))):
            for k in ks:
                mine = [b for b in counts if (name, k, b) in values]
                axes[row][column].plot(mine, [values[name, k, b] for b in mine], marker=".", label=f"k = {k}")
            axes[row][column].set(title=name, xlabel="buckets per sub-table", ylabel=label, xscale="log", yscale="log")
    axes[0][0].legend(frameon=False)
    figure.savefig(path, dpi=130)
    return "\n\n".join(
        [
            f"## Construction (Figure 5)\n\n{_numbers(rows)}, encoding {rows[0].encoding}.",
            f"![construction time and scatter by hash function]({path.name})",
            _table(["buckets", *(f"{name}, k = {k}" for name in hashes for k in ks)], lines),
            "Median seconds and, in brackets, variance over mean of the k-mers in a bucket: about 1 if fair.",
        ]
    )


def _settings(rows: list[TableRow], path: Path) -> str:
    """Figures 6 and 7."""
    text = [f"## Settings of the kernels (Figures 6 and 7)\n\nk = {rows[0].k}, {_numbers(rows)}."]
    text.append(f"![kernel time by settings]({path.name})")
    by = ("kernel", "variant", "threads_per_block", "buckets", "chunk")
    seconds = medians(rows, *by)
    lines = []
    for kernel in dict.fromkeys(row.kernel for row in rows):
        mine = sorted((value, key) for key, value in seconds.items() if key[0] == kernel)
        for value, (_, variant, threads, buckets, chunk) in mine:
            lines.append([kernel, variant or "-", str(threads), str(buckets), str(chunk), f"{value:.4g}"])
    text.append(_table(["kernel", "variant", "threads per block", "buckets", "chunk", "kernel seconds"], lines))
    text.append("Median seconds of the GPU, fastest first. `1x1` is the thesis's Thread to Bucket; chunk matters for\n"
                "thread-to-pair only, which has one bucket.")  # fmt: skip
    plt = pyplot()
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    names = ("sequential-bucket", "warp-to-bucket", "thread-to-bucket", "thread-to-pair")
    for place, kernel in zip(axes.flat, names, strict=True):
        across = "chunk" if kernel == "thread-to-pair" else "buckets"
        some = [row for row in rows if row.kernel == kernel]
        for variant, threads in sorted({(row.variant, row.threads_per_block) for row in some}):
            line = medians([r for r in some if (r.variant, r.threads_per_block) == (variant, threads)], across)
            values = sorted((key[0], value) for key, value in line.items())
            place.plot(*zip(*values, strict=True), marker=".", label=f"{variant} {threads}")
        place.set(title=kernel, xlabel=across, ylabel="kernel seconds", yscale="log")
        if some:
            place.legend(frameon=False, fontsize=6, ncols=2)
    figure.savefig(path, dpi=130)
    return "\n\n".join(text)


def _speedup(rows: list[TableRow], path: Path) -> str:
    """Figures 8 and 9: pairs a second, relative to the CPU comparison's better bucket count."""
    lengths = rows[0].part == "lengths"
    across = "length" if lengths else "k"
    pairs = {(row.kernel, row.variant, getattr(row, across), row.sequences): row.pairs for row in rows}
    seconds = medians(rows, "kernel", "variant", across, "sequences", "buckets")
    rate: dict[tuple[str, int], float] = {}
    for (kernel, variant, x, n, _), value in seconds.items():
        name = f"{kernel} {variant}".strip()
        rate[name, x] = max(rate.get((name, x), 0.0), pairs[kernel, variant, x, n] / value)
    xs = sorted({x for _, x in rate})
    names = [name for name in dict.fromkeys(name for name, _ in rate) if name != "cpu"]
    lines = []
    for x in xs:
        cpu = rate.get(("cpu", x), 0.0)
        cells = [
            f"{rate[name, x]:.4g} ({rate[name, x] / cpu:.1f})" if cpu and (name, x) in rate else "-" for name in names
        ]
        lines.append([str(x), f"{cpu:.4g}", *cells])
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    width = 0.8 / max(1, len(names))
    for place, name in enumerate(names):
        heights = [rate.get((name, x), 0.0) / rate["cpu", x] if ("cpu", x) in rate else 0.0 for x in xs]
        axes.bar([p + (place - (len(names) - 1) / 2) * width for p in range(len(xs))], heights, width, label=name)
    axes.set(xlabel="bases of a sequence" if lengths else "k", ylabel="pairs a second / CPU", xticks=range(len(xs)))
    axes.set_xticklabels(map(str, xs))
    if names:
        axes.legend(frameon=False)
    figure.savefig(path, dpi=130)
    on_cpu = sorted({row.sequences for row in rows if row.kernel == "cpu"})
    title = "Longer sequences (Figure 9)" if lengths else "Speed-up over the CPU (Figure 8)"
    return "\n\n".join(
        [
            f"## {title}\n\n{_numbers(rows)}; on CPU cores n = {', '.join(f'{n:,}' for n in on_cpu)}, "
            f"{rows[0].cores} threads." + (f" k = {rows[0].k}." if lengths else ""),
            f"![speed-up over the CPU comparison]({path.name})",
            _table([across, "cpu", *names], lines),
            "Pairs a second by the median repeat and, in brackets, relative to the CPU's better bucket count on the\n"
            "same arrays.",
        ]
    )
