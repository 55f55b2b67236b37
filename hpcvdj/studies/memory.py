"""The paper's Table III: memory of the forms and the in vivo sequences, at one byte or two bits per base."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hpcvdj.errors import MachineError, option
from hpcvdj.kernels.backends import Backend
from hpcvdj.kernels.method import THREADS_PER_BLOCK
from hpcvdj.kernels.pathways.methods import Baseline, Bitwise
from hpcvdj.recombination.alphabet import packed_bytes
from hpcvdj.recombination.germline import Germline, PaperDForms, Segment, d_forms, j_forms, v_forms
from hpcvdj.recombination.repertoire import Problem
from hpcvdj.studies.pages import Block, Study
from hpcvdj.studies.tables import listing

IN_VIVO_BYTES = 64
"""Bytes of an in vivo sequence at one byte per base, padded (section V-A)."""

IN_VIVO_PACKED_BYTES = 16
"""Bytes of an in vivo sequence at two bits per base."""

PAPER_TABLE_3 = {"V": (1448, 425), "J": (3107, 913), "D": (3210, 908), "in vivo": (6_517_568, 1_629_392)}
"""Bytes of baseline and bit-wise, by the row of the paper's Table III that has them."""


def _percent_saved(baseline: int, bitwise: int) -> float:
    return 100 * (1 - bitwise / baseline) if baseline else 0.0


@dataclass(frozen=True)
class FormsRow:
    """The forms of a segment type: number of segments and forms, and bytes of the forms in both packings."""

    segment_type: str
    segments: int
    forms: int
    baseline_bytes: int
    bitwise_bytes: int

    @property
    def bytes(self) -> tuple[int, int]:
        return self.baseline_bytes, self.bitwise_bytes

    @property
    def reduction(self) -> float:
        """The percentage that two bits per base save."""
        return _percent_saved(self.baseline_bytes, self.bitwise_bytes)


def forms_tables(germline: Germline, convention: str = PaperDForms.name) -> dict[str, list[FormsRow]]:
    """Return Table III of each locus: V and J with all listed alleles, D with the segments that recombine."""
    tables = {}
    for locus in germline.loci:
        segments = {"V": germline.of("V", locus), "D": germline.d_segments(locus), "J": germline.of("J", locus)}
        tables[locus] = _forms_rows(segments, convention, germline.max_p)
    return tables


def _forms_rows(segments: Mapping[str, Sequence[Segment]], convention: str, max_p: int) -> list[FormsRow]:
    forms_of = {"V": v_forms, "J": j_forms, "D": lambda text, max_p: d_forms(text, convention, max_p)}
    rows = []
    for kind, members in segments.items():
        lengths = [len(form) for segment in members for form in forms_of[kind](segment.sequence, max_p)]
        rows.append(FormsRow(kind, len(members), len(lengths), sum(lengths), sum(map(packed_bytes, lengths))))
    return rows


@dataclass(frozen=True)
class MemoryRow:
    """Bytes in a line of Table III: of the bases only, with each form in full bytes, and as uploaded to the GPU."""

    kind: str
    items: int
    baseline_bases: int
    bitwise_bases: int
    baseline_uploaded: int
    bitwise_uploaded: int


def memory_rows(problem: Problem, backend: Backend) -> list[MemoryRow]:
    """Return Table III of a problem of a single locus, with the bytes that `baseline` and `bitwise` upload to the GPU.

    Raise MachineError if the backend does not upload anything.
    """
    kernels = [backend.load(method, problem, THREADS_PER_BLOCK) for method in (Baseline(), Bitwise())]
    if not all(hasattr(kernel, "memory") for kernel in kernels):
        raise MachineError(
            f"{option('backend', backend.name)} uploads nothing: run this on a GPU, or `hpcvdj study forms` for the "
            "bytes of the bases"
        )
    wide, packed = (kernel.memory() for kernel in kernels)  # type: ignore[attr-defined]
    n = len(problem.repertoire)
    used = [*used_forms(problem), FormsRow("in vivo", n, n, n * IN_VIVO_BYTES, n * IN_VIVO_PACKED_BYTES)]
    return [
        MemoryRow(row.segment_type, row.forms, row.baseline_bytes, row.bitwise_bytes, wide[row.segment_type],
                  packed[row.segment_type])
        for row in used
    ]  # fmt: skip


def used_forms(problem: Problem) -> list[FormsRow]:
    """Return the forms of V and J segments in the V–J pairs of a problem, and of the D segments of their loci."""
    germline, pairs = problem.germline, problem.repertoire.pairs
    segments = {
        "V": list({v.allele: v for v, _ in pairs}.values()),
        "J": list({j.allele: j for _, j in pairs}.values()),
        "D": [gene for locus in dict.fromkeys(problem.loci) for gene in germline.d_segments(locus)],
    }
    return _forms_rows(segments, problem.d_forms, germline.max_p)


class Memory(Study):
    """Bytes of forms and sequences."""

    name = "memory"
    title = "Memory of forms and sequences (the paper's Table III)"
    row = MemoryRow
    notes = """
    Bases: one byte a base, or two bits a base with each form padded to whole bytes. GPU: as uploaded; each form and
    sequence has a row of the width that the kernel reads (64 and 16 bytes; 60 for the D forms of the baseline, which
    are in constant memory). Lengths are not included.

    The paper prints the rows V, J and D one line off: its row J has the bytes of V, its row D those of J. Its row V
    must therefore be D's, but no convention tried gives 1,448 and 425 bytes. Its in vivo bytes are those of 101,837
    sequences, not of its 101,822.
    """

    def page(self, rows: list[MemoryRow]) -> Iterator[Block]:
        yield listing(
            rows,
            {
                "": lambda row: row.kind,
                "items": lambda row: f"{row.items:,}",
                "bases: baseline, B": lambda row: f"{row.baseline_bases:,}",
                "bases: bitwise, B": lambda row: f"{row.bitwise_bases:,}",
                "bases: saved": lambda row: f"{_percent_saved(row.baseline_bases, row.bitwise_bases):.2f} %",
                "GPU: baseline, B": lambda row: f"{row.baseline_uploaded:,}",
                "GPU: bitwise, B": lambda row: f"{row.bitwise_uploaded:,}",
                "GPU: saved": lambda row: f"{_percent_saved(row.baseline_uploaded, row.bitwise_uploaded):.2f} %",
                "paper: baseline, B": lambda row: f"{PAPER_TABLE_3[row.kind][0]:,}",
                "paper: bit-wise, B": lambda row: f"{PAPER_TABLE_3[row.kind][1]:,}",
            },
        )
