"""Formats of tables, in the order in which they are tried.  A table that none recognises is read as an AIRR table."""

from importlib import import_module

# A table with AIRR fields is an AIRR table, whatever other columns it has.
for _name in (
    "airr", "adaptive", "changeo", "immunarch", "listed", "mixcr", "olga", "refused", "tcrdist", "tenx", "trust4",
    "vdjtools",
):  # fmt: skip
    import_module(f"{__name__}.{_name}")
