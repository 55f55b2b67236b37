"""How likely the junctions of a table are under several recombination models."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.probabilities.settings import PgenConfig
from hpcvdj.recombination.igor import model_folder
from hpcvdj.recombination.models import Array, Model
from hpcvdj.recombination.origin import read_facts
from hpcvdj.recombination.possible import Possible
from hpcvdj.repertoires.inputs import Inputs, without_rows
from hpcvdj.repertoires.readers import open_table
from hpcvdj.repertoires.reading import Reading
from hpcvdj.storage.inputs import file_digest
from hpcvdj.values.compute import values_of


@dataclass(frozen=True)
class Likelihoods:
    """The likelihoods of the rows of a table under models, and what biases them.

    values         float64 [models, rows]: P(junction with its V and J | a junction is made); NaN for excluded rows
    inferred_from  the names of the models that were inferred from this table
    in_frame       the number of junctions in frame, in rows that not all models exclude
    junctions      the number of these rows
    """

    values: Array
    inferred_from: tuple[str, ...]
    in_frame: int
    junctions: int


def likelihoods_of(path: Path, models: Mapping[str, Model]) -> Likelihoods:
    """The likelihoods of the table at `path` under models, by name."""
    batches = list(open_table(path).batches(["v_call", "j_call", "junction"]))
    if not batches:
        raise without_rows(path)
    table = pa.Table.from_batches(batches)
    digest = file_digest(path)
    facts = {name: read_facts(model_folder(model.name)) or {} for name, model in models.items()}
    inferred_from = [name for name in models if digest in (table[1] for table in facts[name].get("tables", []))]
    config = PgenConfig(("pgen_nt",))
    inputs = Inputs.of_table(table, config.reads(Reading()))
    # Alleles that are not functional make no junction, and models differ in how often they choose them.
    values = np.array([
        values_of(inputs, model, config)[0]["pgen_nt"].to_numpy() / Possible.of(model).probability
        for model in models.values()
    ])  # fmt: skip
    texts = table["junction"].filter(pa.array(~np.isnan(values).all(axis=0)))
    lengths = pc.utf8_length(pc.utf8_trim_whitespace(texts)).to_numpy()
    return Likelihoods(values, tuple(inferred_from), int((lengths % 3 == 0).sum()), len(lengths))
