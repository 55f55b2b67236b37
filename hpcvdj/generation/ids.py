"""The ids of in silico sequences."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def sequence_ids(numbers: NDArray[np.int64]) -> Any:
    """Return insilico_0, … as a pyarrow string Array."""
    return pc.binary_join_element_wise("insilico_", pa.array(numbers).cast(pa.string()), "")
