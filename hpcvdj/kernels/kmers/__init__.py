"""Kernels that compare the k-mers of sequences."""
