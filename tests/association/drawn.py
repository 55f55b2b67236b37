"""Cohorts and persons that are drawn from a model, with nothing associated or grown, or some sequences planted."""

import numpy as np
import pyarrow as pa

import hpcvdj

GENES = ["v_call", "j_call", "junction"]
READS = "duplicate_count"


class Pool:
    """Junctions of a model, one after another, and the sequence that each spells.

    names     of the sequences: V, J and amino acids
    sequence  int64 [junctions]
    numbers   int64 [sequences]
    """

    def __init__(self, model, number, seed):
        drawn = hpcvdj.generate(model, number, seed=seed, productive=True, backend="cpu")
        self.table = drawn.select(GENES)
        calls = [[call.partition("*")[0] for call in drawn[name].to_pylist()] for name in GENES[:2]]
        texts = hpcvdj.translate(drawn["junction"].to_pylist())
        names = ["|".join(words) for words in zip(*calls, texts, strict=True)]
        self.names, self.sequence, self.numbers = np.unique(names, return_inverse=True, return_counts=True)

    def donors(self, sizes, case=None, odds=None, seed=0):
        """A table in memory for each donor, of so many recombinations.

        odds  by how much cases have sequences more often, {place in `names`: odds}: added to what is drawn
        """
        rng, tables, begin = np.random.default_rng(seed), {}, 0
        share = self.numbers / len(self.sequence)
        order = np.argsort(self.sequence, kind="stable")
        ends = np.cumsum(self.numbers)
        for k, size in enumerate(sizes):
            rows = np.arange(begin, begin + size)
            begin += size
            assert begin <= len(self.sequence)
            more = [
                rng.choice(order[ends[place] - self.numbers[place] : ends[place]])
                for place, ratio in (odds or {}).items()
                if case[k] and rng.random() < -np.expm1(-(ratio - 1) * size * share[place])
            ]
            tables[f"d{k:03}"] = self.table.take(pa.array(np.concatenate([rows, np.array(more, dtype=np.int64)])))
        return tables


def metadata(case, **columns):
    """A table of metadata of donors d000, d001, …"""
    return pa.table({
        "donor": [f"d{k:03}" for k in range(len(case))],
        "disease": np.where(case, "ill", "healthy"),
        **{name: [str(value) for value in values] for name, values in columns.items()},
    })  # fmt: skip


def distinct_junctions(model, number, seed=9):
    """Junctions with different genes or bases."""
    table = hpcvdj.generate(model, 2 * number, seed=seed, productive=True, backend="cpu").select(GENES)
    return table.group_by(GENES, use_threads=False).aggregate([]).slice(0, number)


def abundances(rng, number):
    """By Zipf's law, as shares."""
    sizes = np.minimum(1 / rng.random(number), number / 2)
    return sizes / sizes.sum()


def reads_of(rng, abundance, depth, quadratic=0.3, linear=0.0):
    """Negative binomial reads with the variance (1 + linear) m + quadratic m^2."""
    mean = abundance * depth
    shape = 1 / (linear / mean + quadratic)
    return rng.negative_binomial(shape, shape / (shape + mean))


def visits(junctions, *, seed, number, depths, planted=0, factor=30.0, times=(0, 0, 1), **noise):
    """Samples of one person by name, their metadata, and the junctions that expand at the time 1."""
    rng = np.random.default_rng(seed)
    first = abundances(rng, number)
    # Clones of middle size, which no sample misses.
    grown = np.argsort(-first)[100 : 100 + planted]
    later = first.copy()
    later[grown] *= factor
    tables = {}
    for k, (depth, time) in enumerate(zip(depths, times, strict=True)):
        reads = reads_of(rng, later if time else first, depth, **noise)
        seen = np.flatnonzero(reads)
        tables[f"s{k}"] = junctions.take(pa.array(seen)).append_column(READS, pa.array(reads[seen]))
    about = pa.table({"sample": list(tables), "who": ["anna"] * len(times), "month": list(map(str, times))})
    return tables, about, set(junctions["junction"].take(pa.array(grown)).to_pylist())
