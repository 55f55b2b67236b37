"""What the thesis's hash tables count, by their options."""

from hpcvdj.kernels.kmers.masks import exact_from_raw
from hpcvdj.studies.hash_tables.comparison import load
from hpcvdj.studies.hash_tables.construction import KERNELS, TableOptions, build

VARIANTS = [
    *((kernel, {"linear": linear}) for kernel in KERNELS[:3] for linear in (True, False)),
    ("thread-to-pair", {}),
]


def tables_raw(kmers, d, backend="cpu", rows=None, **options):
    """R of `rows`, all by default, on and above the diagonal."""
    chosen = TableOptions(**options)
    return load(build(kmers, d, chosen), chosen, backend)(rows or range(len(kmers)))[0]


def tables_exact(kmers, d, backend="cpu", rows=None, **options):
    """D likewise."""
    return exact_from_raw(tables_raw(kmers, d, backend, rows, **options), kmers.k)
