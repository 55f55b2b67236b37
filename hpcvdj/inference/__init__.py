"""Inference: the recombination model that describes a cohort, and how certain it is."""
