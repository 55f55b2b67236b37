"""Small problems that take every path through the kernels, for compute-sanitizer, which is slow.

compute-sanitizer --tool memcheck  python tests/gpu/under_sanitizer.py
compute-sanitizer --tool racecheck python tests/gpu/under_sanitizer.py
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from hpcvdj.counting.verify import reference
from hpcvdj.errors import choices
from hpcvdj.kernels.generation.tables import DrawTables
from hpcvdj.kernels.inference.layout import unit_of
from hpcvdj.kernels.kmers.methods import KmerMethod, choose
from hpcvdj.kernels.kmers.profile import profile
from hpcvdj.kernels.kmers.sequences import sequence_set
from hpcvdj.kernels.neighbours import degrees_cpu
from hpcvdj.recombination.germline import from_sequences, read_germline
from hpcvdj.recombination.repertoire import Problem
from tests.conftest import TABLES
from tests.gpu.test_kernels import gpu, random_rows
from tests.kernels.generation.cases import NAMES, drawn_of, model_of, same
from tests.kernels.inference.cases import counts_of, largest_differences, long_insertions, problem_with
from tests.kernels.inference.cases import on_cpu as counted_on_cpu
from tests.kernels.kmers.cases import exact, hostile, kmers, random_text, raw, upper
from tests.kernels.neighbours.cases import HOSTILE
from tests.kernels.pgen.problems import (
    junctions,
    olga_model,
    on_cpu,
    pgen_problem,
    require_same,
    small_model,
    values_of,
)
from tests.problems import METHODS, repertoire_of_rows, sample
from tests.studies.hash_tables.cases import VARIANTS, tables_raw


def check(name: str, problem: Problem, methods: tuple[str, ...], **options: int) -> None:
    """Count with each method and compare with the reference."""
    expected = reference(problem)
    for method in methods:
        assert np.array_equal(gpu(problem, method, **options), expected), (name, method)
        print(f"{name}: {method}, {len(problem.repertoire)} sequences: equal", flush=True)


def check_tables() -> None:
    """The comparison kernels, on hostile sets and longer sequences."""
    rng = np.random.default_rng(3)
    for texts in (hostile(), tuple(random_text(rng, length) for length in (300, 40, 200, 0, 150))):
        some = kmers(texts, 6)
        for kernel, variant in VARIANTS:
            for buckets, threads in ((1, 32), (100, 64)):
                settings = {"kernel": kernel, "buckets": buckets, "threads_per_block": threads, **variant}
                counters = tables_raw(some, 1, "cuda", **settings)
                assert np.array_equal(counters, upper(raw(texts, 6, 1))), (kernel, variant, buckets)
        print(f"motif tables, {len(texts)} sequences: equal", flush=True)


def check_motifs() -> None:
    """The methods' own kernels, on hostile sets."""
    for k, d in ((6, 1), (8, 2), (17, 2)):
        expected = exact(hostile(), k, d)
        some = profile(sequence_set(hostile()), k, d)
        for name, method in choices(KmerMethod).items():
            if k <= method.longest_k.get("cuda", k):
                counters = choose(name, k, d, "cuda").load(some).counters(None).get()
                assert np.array_equal(counters, expected), (name, k)
        print(f"motifs, k = {k}, d = {d}: equal", flush=True)


def check_pgen() -> None:
    """Generation probabilities: with and without D genes, D forms in shared and in global memory, all lengths."""
    from hpcvdj.kernels.pgen.pgen_cuda import PgenKernel

    igh = olga_model("human_igh")
    models = {"VDJ": (small_model(1), 64), "VJ": (small_model(2, has_d=False), 128)}
    models |= {"IGH": (igh, 128)} if igh else {}
    for name, (model, longest) in models.items():
        for given in ("both", "none"):
            problem = pgen_problem(model, junctions(model, 40, longest, 3), given)
            require_same(values_of(PgenKernel(problem, 64), problem, (7,)), on_cpu(problem))
            print(f"generation probabilities, {name}, genes given: {given}: same", flush=True)


def check_generation() -> None:
    """Sequences drawn from models of every width of packed junctions."""
    from hpcvdj.kernels.generation.draw_cuda import Sampler

    for name in NAMES:
        if model := model_of(name):
            drawn = Sampler(DrawTables.of(model))(5, 1000, 3)
            assert same(drawn, drawn_of(model, 5, 1000, 3)), name
            print(f"generation, {name}: equal", flush=True)


def check_inference() -> None:
    """Expected counts: with and without D genes, trees and D forms in shared and in global memory, all lengths."""
    from hpcvdj.kernels.inference.errors_cuda import ErrorsKernel
    from hpcvdj.kernels.inference.expectation_cuda import ExpectationKernel

    igh = olga_model("human_igh")
    models = {"VDJ": (small_model(1), 64), "VJ": (long_insertions(False, 90), 128)}
    models |= {"IGH": (igh, 128)} if igh else {}
    for (name, (model, longest)), given, errors in product(models.items(), ("both", "none"), (False, True)):
        model = replace(model, error_rate=0.01 if errors else 0.0)
        problem = problem_with(model, given, 40, longest, 3, errors=errors)
        counts = counts_of((ErrorsKernel if errors else ExpectationKernel)(problem, 64), problem, (7,))
        differences = largest_differences(problem, counts, counted_on_cpu(problem))
        assert max(differences.values()) <= problem.rows * unit_of(problem.rows)[0] * 2.0**-30
        print(f"expected counts, {name}, genes given: {given}, errors: {errors}: same", flush=True)


def check_neighbours() -> None:
    """Degrees of hostile clonotypes."""
    from hpcvdj.kernels.neighbours import degrees_cuda

    for name, made in HOSTILE.items():
        own = made()
        assert np.array_equal(degrees_cuda.degrees(*own), degrees_cpu.degrees(*own)), name
        print(f"degrees, {name}: equal", flush=True)


def main() -> None:
    """All paths: several tiles of a pair, several pairs, blocks, ranks and words, no D genes, distinct D forms."""
    check_motifs()
    check_tables()
    check_pgen()
    check_generation()
    check_inference()
    check_neighbours()
    small = from_sequences(["ACGTAC", "ACG"], ["GGGACA", "TT"], ["TTGCA", "A"], max_p=2)
    rows = [("V1", "J1", "ACGT" + "ACGT"[k % 4] * (k % 5) + "GGAC" + "TGCA") for k in range(70)]
    rows += [("V2", "J2", "ACG"[: k % 4] + "TT" + "A" * (k % 3)) for k in range(5)]
    few = repertoire_of_rows(small, rows[:40])
    check("two pairs, three tiles", Problem(repertoire_of_rows(small, rows), small, 3), METHODS, threads_per_block=32)
    check("three ranks", Problem(few, small, 4), METHODS, threads_per_block=32, ranks=3)
    check("distinct", Problem(few, small, 2, "distinct"), METHODS)
    for path in TABLES:
        germline = read_germline(path)
        short, long = (repertoire_of_rows(germline, random_rows(germline, 24, *shape)) for shape in ((60, 3), (128, 4)))
        check(path.stem, Problem(sample(short, 6), germline, 1), METHODS, threads_per_block=32)
        check(path.stem, Problem(long, germline, 8), ("direct",))


if __name__ == "__main__":
    main()
