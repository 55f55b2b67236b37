"""Is the mean of Q 1 if two genes are left out of the inference of a factor, and is Q 1 for these?

Drawn rows of which those with a glycine in the middle are kept more often; the two most frequent V genes are left out.
In the root of a checkout: `python results/calibration/left_out_genes.py > results/calibration/left_out_genes.txt`
"""

import logging
import warnings
from collections import Counter

import numpy as np
import pyarrow as pa

import hpcvdj
from hpcvdj.chance.fit import GeneFit
from hpcvdj.chance.model_fit import ModelFit
from hpcvdj.inference.selection import infer_selection
from hpcvdj.inference.settings import SelectionSettings
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.repertoires.reading import productive_reading
from tests.dealt import dealt_of
from tests.selected import distinct

MODELS = ("human_tra", "human_trb", "human_igk", "human_igh", "mouse_tra", "mouse_trb")
COLUMNS = ["sequence_id", "v_call", "j_call", "junction", "junction_aa"]


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    for name in MODELS:
        model = hpcvdj.load_model(name)
        drawn = hpcvdj.generate(model, 60_000, seed=777, productive=True, backend="cpu").select(COLUMNS)
        lots = np.random.default_rng(3).random(len(drawn))
        glycine = np.array(["G" in text[5:8] for text in drawn["junction_aa"].to_pylist()])
        rows = drawn.filter(pa.array(lots < 0.15 + 0.85 * glycine))
        genes = [gene for gene, _ in Counter(v.split("*")[0] for v in rows["v_call"].to_pylist()).most_common(2)]
        wrong = (GeneFit("V", gene, 9, 0.0, 0.0, 0.0, 0.1, 0.1, "productive", "broken") for gene in genes)
        dealt = dealt_of(read_table(rows, model, productive_reading()), model)
        fit = infer_selection(dealt, model, SelectionSettings(), "cpu", ModelFit(1, genes=tuple(wrong)))
        assert fit is not None
        fresh = distinct(hpcvdj.generate(model, 60_000, seed=4242, productive=True, backend="cpu"), model)
        q = np.exp(fresh.log_factor(fit.selection))
        left_out = np.array([v in genes for v, _ in fresh.genes])[fresh.pair]
        print(
            f"{name}: {', '.join(genes)} left out, {fresh.times[left_out].sum() / fresh.times.sum():.3f} of draws, "
            f"Q {sorted(set(q[left_out].tolist()))}; mean Q {np.average(q, weights=fresh.times):.4f} ± "
            f"{q.std() / np.sqrt(len(q)):.4f}; gain {fit.gain:.3f} ± {fit.error:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
