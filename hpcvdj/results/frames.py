"""Tables of the kinds that users have in memory: pandas, polars and pyarrow.

pandas and polars are optional: neither is imported unless a table of its kind is given or asked for.
"""

import json
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from hpcvdj.errors import InputError, installing, require_choice

Kind = Literal["pyarrow", "pandas", "polars"]


def kind_of(table: Any) -> Kind:
    """The library of a table; pyarrow for any other object."""
    library = type(table).__module__.partition(".")[0]
    return library if library in ("pandas", "polars") else "pyarrow"  # type: ignore[return-value]


def of_kind(table: pa.Table, kind: Kind) -> Any:
    """A pyarrow Table as a table of another kind, with the same columns; InputError if the library is missing."""
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
    """A table of the kind of `original`, which is `table` in pyarrow, with columns beside it, replacing equal names."""
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
"""The attribute of a pandas DataFrame, and the key of the metadata of a pyarrow Table, that has facts about it."""


def with_facts(table: Any, facts: dict[str, Any]) -> Any:
    """A table with facts about it: a pandas DataFrame has them as `attrs`, a pyarrow Table as JSON; polars has none."""
    kind = kind_of(table)
    if kind == "pandas":
        table.attrs = {**table.attrs, FACTS: facts}
    elif kind == "pyarrow":
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), FACTS: json.dumps(facts)})
    return table


def pandas_column(column: pa.Array) -> Any:
    """Integers as pandas' nullable ones (a float could not hold a 64-bit count), floats, other values as objects."""
    import pandas as pd

    if pa.types.is_floating(column.type):
        return column.to_numpy(zero_copy_only=False)
    if not pa.types.is_integer(column.type):
        return column.to_pylist()
    return pd.arrays.IntegerArray(np.asarray(column.fill_null(0)), np.asarray(column.is_null()))


def require(library: str, extra: str = "") -> None:
    """InputError with the remedy if an optional library is not installed."""
    from importlib.util import find_spec

    if find_spec(library) is None:
        raise InputError(f"{library} is not installed; {installing(extra or library)}")
