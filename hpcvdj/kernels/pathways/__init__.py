"""Kernels that count recombination pathways."""
