"""Tables in memory: pandas, polars and pyarrow.

pandas and polars are optional.  hpcvdj imports them only for users who give or ask for their tables.
"""

import json
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from hpcvdj.errors import InputError, installing, require_choice

Kind = Literal["pyarrow", "pandas", "polars"]


def kind_of(table: Any) -> Kind:
    """Return the library of a table; `pyarrow` for any other object."""
    library = type(table).__module__.partition(".")[0]
    return library if library in ("pandas", "polars") else "pyarrow"  # type: ignore[return-value]


def of_kind(table: pa.Table, kind: Kind) -> Any:
    """Return a pyarrow Table as a table of another kind.  Raise InputError if the library is not installed."""
    require_choice("kind", kind, get_args(Kind))
    if kind == "pyarrow":
        return table
    require(kind)
    if kind == "polars":
        import polars

        return polars.from_arrow(table)
    import pandas as pd

    nullable = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype(), pa.bool_(): pd.BooleanDtype()}
    return table.to_pandas(types_mapper=nullable.get)


def beside(original: Any, table: pa.Table, columns: dict[str, pa.Array]) -> Any:
    """Return a table like `original` with `columns` beside its own; columns of equal names are replaced.

    table  `original` as a pyarrow Table
    """
    table = original if isinstance(original, pa.Table) else table
    kind = kind_of(original)
    if kind == "pandas":
        return original.assign(**{name: pandas_column(column) for name, column in columns.items()})
    if kind == "polars":
        import polars

        return original.with_columns(**{name: polars.from_arrow(column) for name, column in columns.items()})
    for name, column in columns.items():
        if name in table.column_names:
            table = table.drop_columns([name])
        table = table.append_column(name, column)
    return table


FACTS = "hpcvdj"
"""The key of the facts in `attrs` of a pandas DataFrame and in the metadata of a pyarrow Table."""


def with_facts(table: Any, facts: dict[str, Any]) -> Any:
    """Return a table with facts: a pandas DataFrame has them in `attrs`, a pyarrow Table as JSON, polars nowhere."""
    kind = kind_of(table)
    if kind == "pandas":
        table.attrs = {**table.attrs, FACTS: facts}
    elif kind == "pyarrow":
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), FACTS: json.dumps(facts)})
    return table


def pandas_column(column: pa.Array) -> Any:
    """Return a column for pandas: nullable integers (a float cannot hold a 64-bit count), floats, or objects."""
    import pandas as pd

    if pa.types.is_floating(column.type):
        return column.to_numpy(zero_copy_only=False)
    if not pa.types.is_integer(column.type):
        # Of an empty list, pandas makes a column of floats.
        return column.to_pylist() or np.empty(0, dtype=object)
    return pd.arrays.IntegerArray(np.asarray(column.fill_null(0)), np.asarray(column.is_null()))


def require(library: str, extra: str = "") -> None:
    """Raise InputError with the remedy if an optional library is not installed."""
    from importlib.util import find_spec

    if find_spec(library) is None:
        raise InputError(f"{library} is not installed; {installing(extra or library)}")
