"""Compare sequences by k-mers: `hpcvdj.motifs.compare` and `hpcvdj.motifs.cluster`."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pyarrow as pa

from hpcvdj.api.parameters import InOneProcess, taking
from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.sequences import SequenceSet, sequence_set
from hpcvdj.motifs.clusters import cluster as cluster_matrix
from hpcvdj.motifs.comparison import compare_sequences
from hpcvdj.motifs.edges import EdgeFilter
from hpcvdj.motifs.fasta import fasta_name
from hpcvdj.motifs.graph import score_matrix, selected_edges
from hpcvdj.motifs.results import MotifResult
from hpcvdj.motifs.sequences import Input, inputs_of, named, read_again
from hpcvdj.motifs.settings import ClusterSettings, MotifConfig
from hpcvdj.repertoires.readers import as_arrow
from hpcvdj.repertoires.readers.memory import is_column
from hpcvdj.repertoires.table import repertoire_name
from hpcvdj.runs.run import Run


class _Compare(InOneProcess, EdgeFilter, MotifConfig):
    """The arguments of `compare`."""

    sequences: Any
    output: str | Path | None = None
    overwrite: bool = field(default=False, kw_only=True)
    edges: EdgeFilter | None = field(default=None, init=False)


@taking(_Compare)
def compare(sequences: Any, output: str | Path | None, *, overwrite: bool, **options: Any) -> MotifResult:
    """Compare all sequences of a set with all others by their common k-mers within a Hamming distance.

    sequences       a FASTA file; a table (pandas, polars, pyarrow, or the path of a file), whose distinct junctions are
                    compared; a list of such files or tables, or a dict of them by name, compared as one set; or a list
                    of sequences, which are named 1, 2, …
    output          the result file (HDF5) to write; by default it is kept until the result is closed
    overwrite       {overwrite}
    {options}

    Returns a MotifResult, open for reading: `counters()` of all pairs or, with `min_score` or `top`, `edges()`, which
    `to_table()` has as a pyarrow Table.  Use it as a context manager, or `close` it.
    Raises InputError for sequences that cannot be compared.
    """
    config = MotifConfig.of(options).keeping(EdgeFilter.of(options))
    source = _source_of(sequences)
    if output is not None:
        compare_sequences(source, config, Run().to(Path(output), overwrite=overwrite))
        return MotifResult(output)
    with TemporaryDirectory(prefix="hpcvdj-") as folder:
        compare_sequences(source, config, Run().to(Path(folder) / "motifs.h5"))
        # The file stays open after the folder is removed.
        return MotifResult(Path(folder) / "motifs.h5")


def _source_of(sequences: Any) -> SequenceSet | list[Input]:
    if isinstance(sequences, str | Path):
        return inputs_of([Path(sequences)])
    if isinstance(sequences, Mapping):
        return named([replace(_input(table), name=str(name)) for name, table in sequences.items()])
    if not is_column(sequences):
        return [_input(sequences)]
    items = list(sequences)
    if not items:
        raise InputError("no sequences to compare; give at least one")
    are_texts = [isinstance(item, str) and not _is_file(item) for item in items]
    if all(are_texts):
        return sequence_set(items)
    if any(are_texts):
        k = are_texts.index(False)
        what = f"the file {items[k]}" if isinstance(items[k], str) else f"a {type(items[k]).__name__}"
        raise InputError(f"item {k + 1} of the list is {what}, others are sequences; give items of one kind")
    if all(isinstance(item, str | Path) for item in items):
        return inputs_of([Path(item) for item in items])
    return named([replace(source, name=source.name or str(k)) for k, source in enumerate(map(_input, items), start=1)])


def _input(table: Any) -> Input:
    if isinstance(table, str | Path):
        return inputs_of([Path(table)])[0]
    return Input("", table=as_arrow(table))


def _is_file(text: str) -> bool:
    """Return whether a text names a file: sequences lack the suffixes of tables and FASTA files."""
    return fasta_name(repertoire_name(Path(text))) != text


class _Cluster(EdgeFilter, ClusterSettings):
    """The arguments of `cluster`."""

    result: MotifResult | str | Path
    strand: Literal["both", "+", "-"] = field(default="both", kw_only=True)


@taking(_Cluster)
def cluster(result: MotifResult | str | Path, *, strand: str, **options: Any) -> pa.Table:
    """Cluster the similarity graph of a comparison.

    result      {motif_result}
    strand      pairs of which strands: `+` (both as given), `-` (one reverse-complemented), or `both`
    {options}

    Returns a pyarrow Table with a row for each sequence: name, cluster (1 is the largest; 0: in none), size of the
    cluster, degree (neighbours) and weighted_degree (sum of its edges' scores).  The weight of an edge is its score;
    for a pair with an edge on both strands, the larger score.  Edges without a positive score are left out.
    If the file of the junctions is still there, also their v_call, j_call and sequence, and the consensus of their
    cluster.
    """
    settings, edges = ClusterSettings.of(options), EdgeFilter.of(options)
    with nullcontext(result) if isinstance(result, MotifResult) else MotifResult(result) as opened:
        matrix = score_matrix(selected_edges(opened, edges, strand), len(opened))
        clustering = cluster_matrix(matrix, settings)
        present = all(source.path is not None and source.path.is_file() for source in opened.compared.inputs)
        read = read_again(opened.compared, opened.names) if present else None
        return clustering.to_table(opened.names, opened.tables, read)
