"""Result files of small sets, dense and with edges, on one strand and two."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hpcvdj.cli.declared import App
from hpcvdj.errors import speaking_shell
from hpcvdj.kernels.kmers.methods import choose
from hpcvdj.kernels.kmers.profile import Profile, profile
from hpcvdj.kernels.kmers.sequences import SequenceSet, sequence_set
from hpcvdj.kernels.kmers.tile_cpu import clear_lower
from hpcvdj.motifs.edges import EdgeFilter, EdgeFinder, joined
from hpcvdj.motifs.results import MotifWriter
from hpcvdj.motifs.scores import Scoring, base_frequencies, make_score, terms_of
from hpcvdj.motifs.sequences import InputSet
from hpcvdj.storage.hdf5 import atomic_hdf5
from tests.motifs.comparing import TEXTS, D, K


@dataclass(frozen=True)
class Written:
    """A result file and what went into it: counters uint32 and scores [strands, ..., sequences, sequences]."""

    path: Path
    sequences: SequenceSet
    counters: np.ndarray
    scores: np.ndarray


def write_result(
    path, sequences, k=K, d=D, *, strands=1, score="cosine", dense=True, edge_filter=None, tile=256, method="pigeonhole"
):
    """Compare `sequences` and write a result file; what it has."""
    forward = profile(sequences, k, d)
    profiles: list[Profile] = [forward, forward.reverse_complement()][:strands]
    frequencies = base_frequencies(forward, both_strands=strands > 1)
    scoring = Scoring(make_score(score, None, k, d), [terms_of(side, d, frequencies) for side in profiles])
    n = len(sequences)
    counters = [choose(method, k, d, "cpu").load(columns).counters(forward) for columns in profiles]
    edge_filter = edge_filter or EdgeFilter(min_score=0.05)
    finder = EdgeFinder(scoring, edge_filter, n)
    tiles = [
        (s, row, column, counters[s][:, row : row + tile, column : column + tile].copy())
        for s in range(strands) for row in range(0, n, tile) for column in range(row, n, tile)
    ]  # fmt: skip
    edges = None
    if not dense:
        parts = [
            finder.of_tile(part, s, row, column, clear_lower(part, row, column)[1]) for s, row, column, part in tiles
        ]
        edges = edge_filter.best(joined(parts))
    with atomic_hdf5(path, overwrite=False) as file:
        writer = MotifWriter(file, InputSet.in_memory(sequences), scoring, None if dense else len(edges))
        if dense:
            for s, row, column, part in tiles:
                writer.put_tile(s, row, column, part)
        else:
            writer.put_edges(edges)
        facts = {"k": k, "d": d, "strands": strands, "score": score, "weights": list(scoring.score.weights)}
        writer.finish(facts, [{"host": "here"}])
    scores = [scoring.rectangle(counters[s], s, 0, 0) for s in range(strands)]
    return Written(path, sequences, np.array(counters), np.array(scores))


def families(n=60, seed=1, length=50):
    """Sequences in families of about five that share a stretch, one of them on the other strand; and hostile ones."""
    rng = np.random.default_rng(seed)
    texts, names = [], []
    flip = str.maketrans("ACGT", "TGCA")
    for i in range(n):
        if i % 5 == 0:
            core = "".join(rng.choice(list("ACGT"), 24))
        text = list("".join(rng.choice(list("ACGT"), length - 24)) + core)
        text[rng.integers(length)] = "ACGT"[rng.integers(4)]
        joint = "".join(text)
        texts.append(joint.translate(flip)[::-1] if i % 5 == 4 else joint)
        names.append(f"gene{i}")
    texts += ["A" * 30, "ACG", "N" * 20, "ACGTN" * 6]
    names += ["poly<A>", "short", 'all"N', "Ω&n"]
    return sequence_set(texts, names)


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """By (dense, strands): results of the same families."""
    folder = tmp_path_factory.mktemp("motifs")
    some = families()
    return {
        (dense, strands): write_result(
            folder / f"{'dense' if dense else 'edges'}{strands}.h5", some, dense=dense, strands=strands
        )
        for dense in (True, False)
        for strands in (1, 2)
    }


@pytest.fixture
def run():
    """Run a subcommand of `hpcvdj motifs`; its stdout.  What it raises is raised."""

    def invoke(command, *arguments):
        app = App()
        app.command()(command)
        with speaking_shell():
            done = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    return invoke


@pytest.fixture
def fasta(tmp_path):
    """A file of TEXTS."""
    path = tmp_path / "some.fasta"
    path.write_text("".join(f">s{i} described\n{text}\n" for i, text in enumerate(TEXTS)))
    return path
