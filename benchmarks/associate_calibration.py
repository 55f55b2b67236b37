"""Is `hpcvdj associate` calibrated, and what does it find?  Cohorts drawn from a model, with cases twice as deep.

python benchmarks/associate_calibration.py --models human_igk --size 2000 --planted 60 --output figures.jsonl

A line of JSON for each model and cohort.  `null`: nothing goes with the cases.  `planted`: sequences whose rate is 3 or
10 times as high in cases.  `batches`: three batches of different depth, cases in the deepest alone, with strata or
without.  Each line has the shares of small randomised p-values, the inflation and the hits, of the exact test and of
Fisher's.  With --unit ball, of balls; p-values are then compared with uniform ones by one ball of each family, as balls
that overlap depend on each other, and in place of `planted` there are `families`: sequences that differ in one place
from a rare one, each in few donors, at 3 or 10 times the rate in cases, as amino acids.  With --trend, donors have
ages, and the older half, with the planted sequences, is twice as deep.  With --visits, what `--time` finds in persons
with two samples of one time, or one, and one of the next, of whom 25 clonotypes grow 10 or 30 times, or none.
"""

import warnings

import numpy as np
import pyarrow as pa
from _cohort import near
from _common import LOCI, record, timed
from scipy import stats

import hpcvdj
from hpcvdj.association.multiplicity import inflation, q_values
from hpcvdj.repertoires.genes import as_text, kinds_of
from tests.association.drawn import GENES, Pool, distinct_junctions, metadata, visits

SMALL = (0.05, 0.01, 0.001)
ODDS = (3, 10)


def asked(tables, model, ill, batch=None, **options):
    about = metadata(ill, **({} if batch is None else {"lane": batch}))
    given = {"metadata": about, "case": {"disease": "ill"}, "backend": "cpu", "max_p": 1.0, **options}
    found, times = timed(lambda: hpcvdj.associate(tables, model, **given))
    return found, times["seconds"]


def names_of(found):
    """V, J and amino acids of the sequences that are carried."""
    sequences = found.carriers.sequences
    pairs = [sequences.repertoire.pairs[k] for k in kinds_of(sequences.repertoire).tolist()]
    texts = as_text(sequences.letters, sequences.lengths).to_pylist()
    return np.array([f"{v.allele}|{j.allele}|{text}" for (v, j), text in zip(pairs, texts, strict=True)])


def one_of_each(family):
    """The place of a random member of each family."""
    order = np.random.default_rng(4).permutation(len(family))
    return order[np.unique(family[order], return_index=True)[1]]


def figures(found, odds_of):
    """What the exact test and Fisher's say; `odds_of`: by the name of a planted sequence."""
    (own,) = found.tested
    names = names_of(found)[own.rows]
    odds = np.array([odds_of.get(name, 1) for name in names])
    copy = found.carriers.copy[own.rows]
    tests = [("exact", own.uniform, own.q), ("weighted", own.uniform, own.q_weighted)]
    if own.fisher is not None:
        of_fisher = np.ones(len(own.p))
        of_fisher[own.kept] = q_values(own.fisher[0][own.kept])
        tests.append(("fisher", own.fisher[1], of_fisher))
    null = odds == 1
    compared = np.flatnonzero(null)
    if found.carriers.family is not None:
        compared = one_of_each(found.carriers.family[own.rows])
    told = {
        "sequences": len(own.p), "tested": int(own.kept.sum()), "likely_copies": int(copy.sum()),
        "compared": len(compared), "uniform_p_value": float(stats.kstest(own.uniform[compared], "uniform").pvalue),
        "auc": found.auc and found.auc.area,
    }  # fmt: skip
    for name, uniform, q in tests:
        hit = (q <= 0.05) & ~copy
        told[name] = {
            **{f"below_{level}": float((uniform[null] < level).mean()) for level in SMALL},
            "inflation": inflation(uniform[null]), "hits": int(hit.sum()), "false": int((hit & null).sum()),
            **{f"odds_{ratio}": int((hit & (odds == ratio)).sum()) for ratio in ODDS if odds_of},
        }  # fmt: skip
    if odds_of:
        told["planted"] = {str(ratio): int((odds == ratio).sum()) for ratio in ODDS}
    return told


def families(pool, sizes, case, number, seed):
    """Tables in amino acids, and the names of the members of each planted family, a rare sequence first.

    45 % of the cases have one member of a family; of the controls, which are half as deep, 7.5 and 2.25 % in turn.
    """
    rng = np.random.default_rng([seed, 2])
    planted, rows = [], [[] for _ in sizes]
    for k, own in enumerate(rng.permutation(np.flatnonzero(pool.numbers == 1))[:number]):
        v, j, text = pool.names[own].split("|")
        changed = [text[:at] + ("A" if text[at] != "A" else "S") + text[at + 1 :] for at in range(3, len(text) - 3)]
        members = [text, *changed]
        planted.append([(v, j, member) for member in members])
        has = rng.random(len(sizes)) < np.where(case, 0.45, 0.225 / ODDS[k % 2])
        for donor in np.flatnonzero(has).tolist():
            rows[donor].append((v, j, members[rng.integers(len(members))]))
    tables = {}
    for (donor, table), more in zip(pool.donors(sizes).items(), rows, strict=True):
        texts = hpcvdj.translate(table["junction"].to_pylist())
        own = [*zip(*(table[name].to_pylist() for name in GENES[:2]), texts, strict=True), *more]
        columns = zip(("v_call", "j_call", "junction_aa"), zip(*own, strict=True), strict=True)
        tables[donor] = pa.table(dict(columns))
    return tables, planted


def found_families(found, planted):
    """Which planted families have a hit near one of their members; and hits that are near none of them."""
    (own,) = found.tested
    hits = [tuple(name.split("|")) for name in names_of(found)[own.rows[own.q <= 0.05]]]
    of_hit = [[k for k, members in enumerate(planted) if any(near(hit, member) for member in members)] for hit in hits]
    families = {k for own in of_hit for k in own}
    return {
        "sequences": len(own.p), "tested": int(own.kept.sum()), "hits": len(hits),
        "false": sum(not own for own in of_hit),
        **{f"odds_{ratio}": sum(k % 2 == place for k in families) for place, ratio in enumerate(ODDS)},
    }  # fmt: skip


def drawn(model, options):
    """Which donors are cases, how many recombinations each has, the junctions, and what the lines begin with."""
    case = np.arange(options.donors) % 2 == 0
    sizes = np.where(case, 2, 1) * options.size
    about = {"donors": options.donors, "size": options.size, "seed": options.seed}
    return case, sizes, Pool(model, int(sizes.sum()), options.seed), about


def by_balls(model, options):
    """The lines of a model, of balls."""
    case, sizes, pool, about = drawn(model, options)
    about = {"unit": "ball", **about}
    found, seconds = asked(pool.donors(sizes), model, case, unit="ball")
    yield {**about, "cohort": "null", "seconds": seconds, **figures(found, {})}
    tables, members = families(pool, sizes, case, options.planted, options.seed)
    line = {**about, "cohort": "families", "planted": {str(ratio): len(members[k::2]) for k, ratio in enumerate(ODDS)}}
    for unit in ("vj-aa", "ball"):
        found, _ = asked(tables, model, case, unit=unit)
        line[unit] = found_families(found, members)
    yield line


def planted_in(pool, options):
    """Sequences that some donors have, to be planted: the odds by the place in the pool."""
    carriers = pool.numbers / len(pool.sequence) * options.size * options.donors / 2
    common = np.flatnonzero((carriers >= options.donors / 32) & (carriers <= options.donors / 8))
    common = np.random.default_rng([options.seed, 1]).permutation(common)
    return {int(own): ODDS[k % 2] for k, own in enumerate(common[: 2 * options.planted])}


def by_sequences(model, options):
    """The lines of a model."""
    case, sizes, pool, about = drawn(model, options)
    donors, size, seed = options.donors, options.size, options.seed
    given = {}
    if options.trend:
        age = np.random.default_rng([seed, 3]).permutation(donors) / 2 + np.where(case, 50, 0)
        about, given = {"trend": "age", **about}, {"case": None, "trend": "age", "metadata": metadata(case, age=age)}
    cohorts = {"null": {}, "planted": planted_in(pool, options)}
    for cohort, odds in list(cohorts.items())[: 2 if options.planted else 1]:
        found, seconds = asked(pool.donors(sizes, case, odds, seed), model, case, **given)
        of_names = {pool.names[own]: ratio for own, ratio in odds.items()}
        yield {**about, "cohort": cohort, "seconds": seconds, **figures(found, of_names)}
    if options.trend:
        return
    batch = np.array(["deep", "deep", "middle", "shallow"])[np.arange(donors) % 4]
    case = (batch == "deep") & (np.arange(donors) % 2 == 0)
    sizes = np.select([batch == "deep", batch == "middle"], [2 * size, size], size // 2)
    tables = pool.donors(sizes, case, {}, seed)
    for name, given in (("batches", {"strata": ("lane",)}), ("batches_depth_none", {"depth": "none"})):
        found, seconds = asked(tables, model, case, batch, **given)
        yield {**about, "cohort": name, "seconds": seconds, **figures(found, {})}


def visited(model, options):
    """What `--time` finds in so many persons, of whom nothing or 25 clonotypes grow by a factor; a line for each."""
    sets, seed, number, depths = options.visits, options.seed, 30_000, [(4_000, 4_000, 24_000), (12_000, 12_000, 8_000)]
    junctions = distinct_junctions(model, number, seed)
    for replicates in (True, False):
        for factor in (1, 10, 30):
            uniform, true, false, with_false = [], 0, 0, 0
            for k in range(sets):
                tables, about, grown = visits(
                    junctions, seed=[seed, k], number=number, depths=depths[k % 2], planted=25 * (factor > 1),
                    factor=factor,
                )  # fmt: skip
                if not replicates:
                    del tables["s1"]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", hpcvdj.HpcvdjWarning)
                    found = hpcvdj.associate(
                        tables, model, metadata=about, subject="who", time="month", backend="cpu", max_p=1.0
                    )
                rows = found.table.filter(pa.compute.less_equal(found.table["q_value"], found.max_q))
                hits = set(rows["junction"].to_pylist())
                true, false = true + len(hits & grown), false + len(hits - grown)
                with_false += bool(hits - grown)
                uniform.append(found.uniform)
            line = {
                "cohort": "visits", "seed": seed, "sets": sets, "replicates": replicates, "factor": factor,
                "clonotypes": sum(map(len, uniform)), "planted": 25 * sets * (factor > 1), "true": true, "false": false,
                "sets_with_false": with_false,
            }  # fmt: skip
            if factor == 1:
                values = np.concatenate(uniform)
                line |= {f"below_{level}": float((values < level).mean()) for level in SMALL}
                line["uniform_p_values"] = [float(stats.kstest(part, "uniform").pvalue) for part in uniform]
            yield line


def measured(options):
    """The lines of all models."""
    ways = by_balls if options.unit == "ball" else visited if options.visits else by_sequences
    for model in options.models:
        for line in ways(model, options):
            yield {"model": model, "version": hpcvdj.__version__, **line}


if __name__ == "__main__":
    record(
        __doc__, measured,
        models=(LOCI, "models"),
        donors=(200, "of a cohort"),
        size=(2_000, "recombinations of each control; cases have twice as many"),
        planted=(60, "sequences or families at each odds; 0: no such cohort"),
        unit=("vj-aa", "vj-aa or ball"),
        trend=(False, "with ages instead of cases"),
        visits=(0, "of --time instead: persons of each kind"),
        seed=(1, "of what is drawn"),
    )  # fmt: skip
