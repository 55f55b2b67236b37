"""How any long computation runs: ranks, work items, folders, stopping, progress, provenance."""
