"""How well and how fast does `hpcvdj infer` find a known model again, and how fast are vdjtools and righor?

python benchmarks/infer.py --output results/infer/raw.csv
python benchmarks/infer.py --models human_trb --rows 1000000 --iterations 30 --peer-rows 0 --output million.csv

Draws out-of-frame junctions from a model of OLGA, with their V and J alleles, and infers it from a start where
everything is equally likely, without held-out rows and prior.  A row for each iteration: seconds of the E step and of
all (wall and processor time), the log-likelihood, and L1 distances between the distributions of the model that was
reached and of the one that made the junctions; a distribution that depends on an allele is averaged over the alleles by
their probability.  The first row of a model has the log-likelihood of the model that made them.

With vdjtools installed, its `infer_native` on one thread takes `--peer-rows` of the junctions with the same calls, in
the same run: seconds of one and of three iterations, whose difference is two.  With righor installed, it takes
`--righor-rows` of them on one thread, from the model as hpcvdj writes it: seconds of the second and third iteration.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from _common import record, timed
from _vdjtools import INSTALLED, VERSION, template

from hpcvdj.api.models import write_model
from hpcvdj.generation.generate import generate
from hpcvdj.generation.settings import GenerationSettings
from hpcvdj.inference.infer import FIRST_ERROR_RATE, THREADS_PER_BLOCK
from hpcvdj.inference.parameters import free_parameters, uniform
from hpcvdj.inference.search import Search
from hpcvdj.inference.settings import InferenceSettings
from hpcvdj.inference.tables import reading_for
from hpcvdj.kernels.backends import Backend, open_backend
from hpcvdj.kernels.inference.method import Expectation, ExpectationWithErrors, InferenceProblem
from hpcvdj.recombination.igor import FILES, load_model
from hpcvdj.recombination.models import Array, Model
from hpcvdj.recombination.possible import Possible
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.runs.run import Run


def out_of_frame(model: Model, rows: int, seed: int) -> pa.Table:
    """Junctions of a model whose length is no multiple of three, with their alleles."""
    plan = GenerationSettings(int(rows * 1.7) + 1000, seed=seed)
    drawn = pa.Table.from_batches(list(generate(model, plan, open_backend("cpu"), Run())))
    lengths = pc.utf8_length(drawn["junction"]).to_numpy()
    return drawn.filter(pa.array((lengths % 3 > 0) & (lengths <= 128))).slice(0, rows)


def l1(p: Array, q: Array, weights: Array | None = None) -> float:
    """The L1 distance of two distributions; of rows of them, the mean with these weights."""
    if weights is None:
        return float(np.abs(p - q).sum())
    p, q = (own.reshape(len(own), -1) for own in (p, q))
    p = p / np.maximum(p.sum(axis=1, keepdims=True), 1e-300)
    return float((np.abs(p - q).sum(axis=1) * weights).sum() / weights.sum())


def distances(truth: Model, found: Model) -> dict[str, float]:
    """L1 distances of a found model from the part of `truth` that can make a junction."""
    possible = Possible.of(truth)
    choice = possible.choice / possible.choice.sum()
    p_v, p_j = choice.sum(axis=(1, 2)), choice.sum(axis=(0, 1))
    out = {"v": l1(p_v, found.p_segment("V")), "j": l1(p_j, found.p_segment("J"))}
    if truth.has_d:
        out["dj"] = l1(choice.sum(axis=0), found.p_dj)
        out["d_del"] = l1(possible.d_deletions, found.d_deletions, choice.sum(axis=(0, 2)))
    else:
        out["vj"] = l1(choice[:, 0], found.p_vj)
    out["v_del"] = l1(possible.v_deletions, found.v_deletions, p_v)
    out["j_del"] = l1(possible.j_deletions, found.j_deletions, p_j)
    for number, (own, other) in enumerate(zip(truth.insertions, found.insertions, strict=True), 1):
        out[f"ins_{number}"] = l1(own.lengths, other.lengths)
        out[f"steps_{number}"] = l1(own.transitions.T, other.transitions.T, own.first)
    return out


def misread(table: pa.Table, error_rate: float) -> pa.Table:
    """The junctions with bases replaced by others at this rate."""
    texts = np.array(table["junction"].to_pylist(), dtype="S")
    bases, rng = texts.view(np.uint8), np.random.default_rng(12)
    wrong = np.flatnonzero((rng.random(len(bases)) < error_rate) & (bases > 0))
    others = np.array([list(b"ACGT".replace(bytes([base]), b"")) for base in bases[wrong]], np.uint8).reshape(-1, 3)
    bases[wrong] = others[np.arange(len(wrong)), rng.integers(0, 3, len(wrong))]
    return table.set_column(table.column_names.index("junction"), "junction", [texts.astype(str)])


def inferred(name: str, rows: int, iterations: int, backend: Backend, error_rate: float) -> Iterator[dict[str, Any]]:
    """A row for each iteration."""
    truth = replace(load_model(name), error_rate=error_rate)
    drawn = misread(out_of_frame(truth, rows, 11), error_rate)
    junctions = read_table(drawn, truth, reading_for(InferenceSettings()))
    model = replace(uniform(truth), error_rate=FIRST_ERROR_RATE if error_rate else 0.0)
    problem = InferenceProblem(junctions.repertoire, np.ones(len(junctions), np.uint32), truth, error_rate > 0)
    method = ExpectationWithErrors() if error_rate else Expectation()
    kernel: Any = backend.load(method, problem, THREADS_PER_BLOCK)
    (unit,) = method.units(problem, 0, range(0))

    def counts(own: Model) -> Any:
        kernel.take(own)
        return problem.layout.expected(kernel(unit, 0, len(junctions))[0], own, problem.rows)

    common = {"program": "hpcvdj", "model": name, "rows": len(junctions), "error_rate": error_rate}
    yield common | {"kind": "truth", "log_likelihood": counts(truth).log_likelihood / len(junctions)}
    settings = InferenceSettings(iterations=iterations, tolerance=0.0)
    search = Search(settings, free_parameters(model), len(junctions), 0, model)
    while not search.done:
        own, wall, cpu = search.model, time.perf_counter(), time.process_time()
        expected = counts(own)
        e_step = time.perf_counter() - wall
        found = search.take(expected, e_step)
        yield common | {
            "iteration": found.iteration, "kind": found.kind, "accepted": found.accepted,
            "log_likelihood": found.log_likelihood, "e_step_seconds": e_step, "seconds": time.perf_counter() - wall,
            "cpu_seconds": time.process_time() - cpu, "rate": own.error_rate,
            **{f"l1_{key}": value for key, value in distances(truth, own).items()},
        }  # fmt: skip


def by_vdjtools(name: str, rows: int) -> Iterator[dict[str, Any]]:
    """Seconds of one and of three iterations."""
    from vdjtools.model.infer import gene_masks, infer_native

    start = template(name)
    table = out_of_frame(load_model(name), rows, 11)
    texts = table["junction"].to_pylist()
    masks = gene_masks(start, table["v_call"].to_pylist(), table["j_call"].to_pylist())
    for iterations in (1, 3):
        settings = {"max_iter": iterations, "tol": 0.0, "masks": masks, "single_d": True, "threads": 1}
        _, times = timed(lambda settings=settings: infer_native(start, texts, **settings))
        yield {"program": f"vdjtools {VERSION}", "model": name, "rows": len(texts), "iteration": iterations, **times}


def by_righor(name: str, rows: int) -> Iterator[dict[str, Any]]:
    """Seconds of the second and the third iteration, from a start where everything is equally likely."""
    import righor

    model, names = load_model(name), ("path_params", "path_marginals", "path_anchor_vgene", "path_anchor_jgene")
    with TemporaryDirectory() as folder:
        write_model(model, Path(folder) / "model")
        paths = {key: f"{folder}/model/{file}" for key, file in zip(names, FILES, strict=True)}
        start = righor.load_model_from_files(**paths).uniform()
    v, j = ({gene.name: gene for gene in genes} for genes in (start.v_segments, start.j_segments))
    table = out_of_frame(model, rows, 11).to_pylist()
    sequences = [(row["junction"], [v[row["v_call"]]], [j[row["j_call"]]]) for row in table]
    for number in (1, 2, 3):
        times = timed(lambda: start.infer(sequences))[1]
        if number > 1:
            program = f"righor {metadata.version('righor')}"
            yield {"program": program, "model": name, "rows": rows, "iteration": number, **times}


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """All raw rows."""
    backend = open_backend(options.backend)
    with_righor = options.righor_rows and find_spec("righor")
    if with_righor:
        import righor  # MIT licence

        righor.set_number_threads(1)  # which it does once only
    for name in options.models:
        yield from inferred(name, options.rows, options.iterations, backend, options.error_rate)
        if INSTALLED and options.peer_rows:
            yield from by_vdjtools(name, options.peer_rows)
        if with_righor:
            yield from by_righor(name, options.righor_rows)


if __name__ == "__main__":
    record(
        __doc__, measured,
        models=(["human_trb", "mouse_trb", "human_tra", "human_igh"], "models"),
        rows=(100_000, "junctions drawn from each"),
        iterations=(60, "of hpcvdj"),
        peer_rows=(200, "of these for vdjtools; 0: without it"),
        righor_rows=(1000, "of these for righor; 0: without it"),
        error_rate=(0.0, "of misread bases, which is inferred as well; 0: without"),
        backend=("cpu", "cpu or cuda"),
    )  # fmt: skip
