"""The system of the thesis: multi-level hash tables that are compared pair by pair (docs/motif_tables.md)."""
