"""Result files of small sets, dense and with edges, on one strand and two."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from hpcvdj.kernels.kmers.profile import Profile, profile
from hpcvdj.kernels.kmers.join_cpu import Pigeonhole
from hpcvdj.kernels.kmers.matrix_cpu import Matrix
from hpcvdj.motifs.edges import Selection, joined
from hpcvdj.motifs.results import Header, MotifStore
from hpcvdj.motifs.scores import base_frequencies, scoring, terms_of
from hpcvdj.motifs.sequences import SequenceSet, sequence_set

K, D = 6, 2


@dataclass(frozen=True)
class Written:
    """A result file and what went into it: counters uint32 and scores [strands, ..., sequences, sequences]."""

    path: Path
    sequences: SequenceSet
    counters: np.ndarray
    scores: np.ndarray


def write_result(
    path, sequences, k=K, d=D, *, strands=1, kind="cosine", dense=True, selection=None, tile=256, method=Pigeonhole
):
    """Compare `sequences` and write a result file; what it holds."""
    mine = profile(sequences, k, d)
    profiles: list[Profile] = [mine, mine.reverse_complement()][:strands]
    frequencies = base_frequencies(mine, both_strands=strands > 1)
    terms = tuple(terms_of(some, d, frequencies) for some in profiles)
    how = scoring(kind, None, k, d)
    n = len(sequences)
    counters = []
    for columns in profiles:
        loaded = Pigeonhole(columns, d, d + 2) if method is Pigeonhole else Matrix(columns, d)
        counters.append(loaded.counters(mine))
    scores = [how.of(counters[s], terms[0], terms[s]) for s in range(strands)]
    selection = selection or Selection(0.05)
    header = Header(sequences.names, sequences.lengths, k, d, strands, False, how, terms)
    parts = []
    with MotifStore(path, header, dense=dense) as store:
        for s in range(strands):
            for row in range(0, n, tile):
                for column in range(row, n, tile):
                    part = counters[s][:, row : row + tile, column : column + tile]
                    if dense:
                        store.put_tile(s, row, column, part)
                    else:
                        score = scores[s][row : row + tile, column : column + tile]
                        parts.append(selection.from_tile(part, score, row, column, s))
        if not dense:
            store.put_edges(selection.finish(joined(parts, d)))
        store.finish({}, [{"host": "here"}])
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

    def invoke(module, *arguments):
        app = typer.Typer()
        app.command(module.NAME)(module.command)
        done = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    return invoke
