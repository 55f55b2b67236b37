"""Tables of mutated B cells, whose junctions are not as recombination made them."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.chance.fit import at_least
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.inputs import SAMPLED_TABLES
from hpcvdj.repertoires.table import Table

V_IDENTITY = "v_identity"
"""AIRR's column: the share of the bases of a read's V gene that are those of its germline.  IgBLAST writes percent."""

UNMUTATED = 0.98
"""The share below which a V gene is usually called mutated (Hamblin et al., Blood 94:1848, 1999)."""

MOST_MUTATED = 0.1
"""The share of mutated rows from which on a table is worth a line."""


def mutated_rows(tables: Sequence[Table], model: Model) -> Iterator[str]:
    """Yield a warning for each of the first tables of B cells of which many rows have mutated V genes.

    The first rows of a table are read.  Raises InputError if a table cannot be read.
    """
    if not any(template.allele.startswith("IG") for template in model.v):
        return
    for table in tables[:SAMPLED_TABLES]:
        reader = table.open()
        if V_IDENTITY not in reader.columns:
            continue
        texts = [batch.column(V_IDENTITY).cast(pa.string()) for batch in reader.first_batches([V_IDENTITY])]
        numbers = pa.chunked_array(texts, pa.string())
        numbers = numbers.filter(pc.match_substring_regex(numbers, r"^\d+(\.\d*)?$"))
        identity = numbers.cast(pa.float64()).to_numpy()
        number = int((identity < UNMUTATED * (100 if np.any(identity > 1) else 1)).sum())
        if at_least(number, max(len(identity), 1)) > MOST_MUTATED:
            yield (
                f"{table.path}: {100 * number / len(identity):.0f} % of the first {len(identity):,} rows have a V gene "
                f"that is mutated in more than {100 * (1 - UNMUTATED):.0f} % of its bases ({V_IDENTITY}): "
                "recombination did not make their junctions as they are, so these seem too improbable; give unmutated "
                "rows"
            )
