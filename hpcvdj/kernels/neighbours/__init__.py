"""Kernels that find equal sequences, and sequences that differ in one or two places."""
