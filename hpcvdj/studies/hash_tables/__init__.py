"""The thesis's system: multi-level hash tables, compared pair by pair (docs/motif_tables.md)."""
