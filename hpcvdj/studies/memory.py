"""The paper's Table III: memory of the forms and of the in vivo sequences, one byte and two bits a base."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hpcvdj.kernels.backends import Backend
from hpcvdj.errors import MachineError
from hpcvdj.kernels.pathways.methods import Problem
from hpcvdj.runs.partition import THREADS_PER_BLOCK
from hpcvdj.recombination.alphabet import packed_bytes
from hpcvdj.recombination.germline import DForms, Germline, d_forms, j_forms, v_forms
from hpcvdj.studies.measuring import commands, read

IN_VIVO_BYTES = 64
"""Bytes of an in vivo sequence at one byte a base, padded (section V-A)."""

IN_VIVO_PACKED_BYTES = 16
"""Bytes of one at two bits a base."""

PAPER_TABLE_3 = {"V": (1448, 425), "J": (3107, 913), "D": (3210, 908), "in vivo": (6_517_568, 1_629_392)}
"""Bytes, baseline and bit-wise, by the row of the paper's Table III in which they are printed."""


@dataclass(frozen=True)
class FormsRow:
    """Forms of one segment type: how many segments and forms, and the forms' bytes in both packings."""

    segment_type: str
    segments: int
    forms: int
    baseline_bytes: int
    bitwise_bytes: int

    @property
    def reduction(self) -> float:
        """Percent that two bits a base save."""
        return 100 * (1 - self.bitwise_bytes / self.baseline_bytes) if self.baseline_bytes else 0.0


@dataclass(frozen=True)
class FormsTable:
    """Table III of one locus."""

    locus: str
    rows: tuple[FormsRow, ...]

    def forms(self, segment_type: str) -> int:
        """Forms of a segment type."""
        return next(row.forms for row in self.rows if row.segment_type == segment_type)

    @property
    def in_silico_per_string(self) -> int:
        """In silico sequences that each n-nucleotide string takes part in, its cuts apart (section IV)."""
        return self.forms("V") * self.forms("J") * max(1, self.forms("D"))

    @property
    def v_j_threads(self) -> int:
        """Threads of the V–J alternative that section IV considers."""
        return self.forms("V") * self.forms("J")

    def is_paper_set(self) -> bool:
        """Whether the V and J rows have the bytes that the paper prints, one line off."""
        bytes_of = {row.segment_type: (row.baseline_bytes, row.bitwise_bytes) for row in self.rows}
        return bytes_of["V"] == PAPER_TABLE_3["J"] and bytes_of["J"] == PAPER_TABLE_3["D"]


def forms_tables(germline: Germline, kind: DForms = "paper") -> list[FormsTable]:
    """Table III of each locus of a germline: every V and J allele listed, the D segments that take part."""
    return [_table(germline, locus, kind) for locus in germline.loci]


def _table(germline: Germline, locus: str, kind: DForms) -> FormsTable:
    max_p = germline.max_p
    listed = {
        "V": [v_forms(s.sequence, max_p) for s in germline.of("V", locus)],
        "D": [d_forms(s.sequence, kind, max_p) for s in germline.d_segments(locus)],
        "J": [j_forms(s.sequence, max_p) for s in germline.of("J", locus)],
    }
    return FormsTable(locus, tuple(_row(name, segments) for name, segments in listed.items()))


def _row(name: str, segments: list[list[str]]) -> FormsRow:
    lengths = [len(form) for forms in segments for form in forms]
    return FormsRow(name, len(segments), len(lengths), sum(lengths), sum(map(packed_bytes, lengths)))


@dataclass(frozen=True)
class MemoryRow:
    """Bytes of one line of Table III: of the bases alone, each form in whole bytes, and as they lie on the GPU."""

    kind: str
    items: int
    baseline_bases: int
    bitwise_bases: int
    baseline_uploaded: int
    bitwise_uploaded: int


def memory_rows(problem: Problem, backend: Backend) -> list[MemoryRow]:
    """Table III of a problem of one locus, with what `baseline` and `bitwise` really put on the GPU.

    MachineError if the backend has no memory of its own.
    """
    kernels = [backend.load(method, problem, THREADS_PER_BLOCK) for method in ("baseline", "bitwise")]
    if not all(hasattr(kernel, "memory") for kernel in kernels):
        raise MachineError(
            f"backend {backend.name} uploads nothing: run this on a GPU; `hpcvdj forms` computes the bytes without one"
        )
    wide, packed = (kernel.memory() for kernel in kernels)  # type: ignore[attr-defined]
    rows = []
    used = _used_forms(problem)
    for kind in ("V", "J", "D"):
        lengths = used[kind]
        bases = sum(lengths), sum(map(packed_bytes, lengths))
        rows.append(MemoryRow(kind, len(lengths), *bases, wide[kind], packed[kind]))
    n = len(problem.repertoire)
    bases = n * IN_VIVO_BYTES, n * IN_VIVO_PACKED_BYTES
    return [*rows, MemoryRow("in vivo", n, *bases, wide["in vivo"], packed["in vivo"])]


def _used_forms(problem: Problem) -> dict[str, list[int]]:
    """Lengths of the forms of the segments that the repertoire's pairs have, each segment's once."""
    max_p, pairs = problem.germline.max_p, problem.repertoire.pairs
    genes = [gene for locus in dict.fromkeys(problem.loci) for gene in problem.germline.d_segments(locus)]
    texts = {
        "V": [v_forms(text, max_p) for text in {v.allele: v.sequence for v, _ in pairs}.values()],
        "J": [j_forms(text, max_p) for text in {j.allele: j.sequence for _, j in pairs}.values()],
        "D": [d_forms(gene.sequence, problem.d_forms, max_p) for gene in genes],
    }
    return {kind: [len(form) for forms in some for form in forms] for kind, some in texts.items()}


def render(folder: Path) -> str:
    """Make README.md from the raw rows; returns the Markdown."""
    rows, facts = read(folder, MemoryRow)
    lines = [
        "# Memory of forms and sequences (the paper's Table III)\n\nMade from the raw rows by `hpcvdj study render`.\n",
        "| | items | baseline: bases, B | bit-wise: bases, B | saved | on the GPU: baseline, B | bit-wise, B | saved "
        "| paper: baseline | bit-wise |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        paper = PAPER_TABLE_3[row.kind]
        lines.append(
            f"| {row.kind} | {row.items:,} | {row.baseline_bases:,} | {row.bitwise_bases:,} | "
            f"{_saved(row.baseline_bases, row.bitwise_bases)} | {row.baseline_uploaded:,} | {row.bitwise_uploaded:,} | "
            f"{_saved(row.baseline_uploaded, row.bitwise_uploaded)} | {paper[0]:,} | {paper[1]:,} |"
        )
    lines += [
        "",
        "Bases: a byte a base, or two bits a base with each form filled up to whole bytes. On the GPU: as uploaded,\n"
        "every form and sequence in a row of the width that the kernel reads (64 and 16 bytes; D forms of the\n"
        "baseline, in constant memory, 60), lengths apart.\n\n"
        "The paper's rows of V, J and D stand one line off: the bytes of V are those it prints for J, those of J the\n"
        "ones it prints for D. What it prints for V must be D's; no convention tried gives 1,448 and 425. Its in vivo\n"
        "bytes are those of 101,837 sequences, not of its 101,822.",
        "",
        commands(facts),
    ]
    text = "\n".join(lines) + "\n"
    (folder / "README.md").write_text(text)
    return text


def _saved(wide: int, packed: int) -> str:
    return f"{100 * (1 - packed / wide):.2f} %" if wide else "-"
