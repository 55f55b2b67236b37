"""The settings of a comparison of sequences, and of clusters."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from hpcvdj.errors import InputError, choices, option
from hpcvdj.kernels.backends import AUTO, BackendName, StrictBinding
from hpcvdj.kernels.kmers.kmers import MAX_D, MAX_K
from hpcvdj.kernels.kmers.methods import KmerMethod, choose
from hpcvdj.kernels.kmers.profile import Profile
from hpcvdj.motifs.edges import EdgeFilter
from hpcvdj.motifs.scores import Score, WeightedSum, make_score
from hpcvdj.options import Option, Settings, setting
from hpcvdj.recombination.productive import Rows

Strands = Annotated[
    Literal["one", "both"], Option("`one`: sequences as given; `both`: also against the reverse complements")
]


def relations_of(strands: str) -> int:
    """Return the number of strand relations of two sequences for a value of `Strands`."""
    return 2 if strands == "both" else 1


K = Annotated[int, Option("bases of a k-mer", flags="-k", least=4, most=MAX_K)]
D = Annotated[int, Option("largest Hamming distance between k-mers", flags="-d", least=0, most=MAX_D)]
SequenceField = Annotated[str, Option("the column of a table that has the sequences", metavar="COLUMN")]
RowsOption = Annotated[
    Rows,
    Option("of a table: `productive` rows, by its column productive or, without that, by the junction; or `all` rows"),
]


def _weights(text: str) -> tuple[float, ...]:
    """Parse a text such as `1,0.5,0.1`.  Raise ValueError for other texts."""
    return tuple(float(part) for part in text.split(","))


class MotifConfig(Settings, kw_only=True):
    """What to compare and how.

    edges  the filter of edges to keep; None for the counters of all pairs
    """

    k: K = 12
    d: D = 2
    strands: Strands = "one"
    distinct: bool = setting("count a k-mer once, however often it occurs in a sequence", False, more=True)
    method: str = setting(
        "`auto`, the fastest that was measured for this k, d and backend, or the name of a method, which "
        "docs/motifs.md describes", AUTO, choices=lambda: (AUTO, *choices(KmerMethod)), more=True)  # fmt: skip
    blocks: int = setting("blocks that `pigeonhole` cuts a k-mer into; 0 chooses the number", 0, least=0, more=True)
    backend: BackendName = AUTO
    score: str | None = setting("how to score pairs, as docs/motifs.md describes", None, choices=lambda: choices(Score),
                                unset="`cosine` for tables, `weights` for FASTA")  # fmt: skip
    weights: Sequence[float] | None = setting(
        "a weight for each distance", None, metavar="W0,W1…", unset="1 / (C(k, h) 3^h)", parse=_weights,
        remedy="give numbers such as 1,0.5,0.1", more=True)  # fmt: skip
    edges: EdgeFilter | None = None
    memory: float = setting("gigabytes of memory for the tables of a rank; 0: a quarter of the host's memory, divided "
                            "among the ranks, or half of the GPU's free memory", 0.0, least=0, more=True)  # fmt: skip
    sequence_field: SequenceField = "junction"
    rows: RowsOption = "productive"
    strict_binding: StrictBinding = False

    def keeping(self, edges: EdgeFilter) -> "MotifConfig":
        """Return the configuration with a filter of edges; an empty filter means the counters of all pairs."""
        return replace(self, edges=None if edges == EdgeFilter() else edges)

    @property
    def relations(self) -> int:
        """Number of strand relations of a pair: 1 for sequences as given, 2 with the reverse complements."""
        return relations_of(self.strands)

    @property
    def memory_bytes(self) -> int:
        """Bytes that the tables of a rank may take; for 0 see `memory`."""
        return int(self.memory * 1e9)

    def make_score(self) -> Score:
        """Make the score.  Raise InputError for an unknown name or wrong weights."""
        return make_score(self.score or WeightedSum.name, self.weights, self.k, self.d)

    def choose(self, backend: str, profile: Profile, name: str = "") -> KmerMethod:
        """Choose the method, or that called `name`.  Raise InputError if it is unknown or does not take such k-mers."""
        if self.blocks and self.method not in (AUTO, "pigeonhole"):
            raise InputError(f"{option('blocks', self.blocks)}: applies only to the method pigeonhole; leave it out")
        kmers = float(profile.windows.sum() / max(1, len(profile)))
        return choose(name or self.method, self.k, self.d, backend, blocks=self.blocks, kmers=kmers)


Algorithm = Literal["louvain", "components", "label-propagation"]
Singletons = Literal["none", "own"]


class ClusterSettings(Settings, kw_only=True):
    """How to cluster a graph."""

    algorithm: Algorithm = setting(
        "`louvain`: clusters of high modularity; `components`: sequences that a path of edges connects; "
        "`label-propagation`: each sequence takes the cluster with the largest weight among its neighbours; all but "
        "components need networkx", "louvain")  # fmt: skip
    resolution: float = setting("of louvain: above 1 gives smaller clusters, below 1 larger ones", 1.0, above=0)
    seed: int = setting("the same seed gives the same clusters", 1, least=0)
    min_size: int = setting("put clusters of fewer sequences into cluster 0", 1, least=1)
    singletons: Singletons = setting("sequences without edges: `none` puts them in cluster 0, `own` gives each its own "
                                     "cluster", "none")  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resolution != 1 and self.algorithm != "louvain":
            raise InputError(f"{option('resolution', self.resolution)}: applies only to louvain; leave it out")
        if self.singletons == "own" and self.min_size > 1:
            raise InputError(
                f"{option('singletons', 'own')} keeps clusters of one sequence, and "
                f"{option('min_size', self.min_size)} removes them; give only one"
            )
