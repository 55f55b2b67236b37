"""The run layer of long computations: ranks, work items, folders, stopping, progress and provenance."""
