"""Databases and samples of drawn junctions."""

import numpy as np
import pyarrow as pa


def records_of(rows, epitopes, seed=0):
    """A database of drawn junctions, half of whose epitopes are decoys."""
    epitope = np.random.default_rng(seed).integers(0, epitopes, len(rows))
    return pa.table({
        "v_call": rows["v_call"], "j_call": rows["j_call"], "junction_aa": rows["junction_aa"],
        "epitope": pa.array([f"E{k:02}" for k in epitope]),
        "organism": pa.array(np.where(epitope < epitopes // 2, "decoy", "other")),
    })  # fmt: skip


def sample_of(rows):
    return rows.select(["sequence_id", "v_call", "j_call", "junction"])
