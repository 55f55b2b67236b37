"""Motif comparison: the k-mers that each pair of sequences of a set has in common, within Hamming distance d.

Source: Todd, A.: Parallel Gene Upstream Comparison via Multi-Level Hash Tables on GPU, thesis, University of
Missouri-Columbia, 2016 ("the thesis").
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpcvdj.api.motifs import cluster, compare
    from hpcvdj.motifs.results import MotifResult

__all__ = ["MotifResult", "cluster", "compare"]

_HOMES = {
    "MotifResult": "hpcvdj.motifs.results:MotifResult",
    "cluster": "hpcvdj.api.motifs:cluster",
    "compare": "hpcvdj.api.motifs:compare",
}


def __getattr__(name: str) -> Any:
    # This is for users; the package itself imports from its modules.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hpcvdj.public import public

    return public(globals(), name, _HOMES[name])


def __dir__() -> list[str]:
    return sorted(__all__)
