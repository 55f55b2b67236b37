"""Everything that must be fast: numba and CUDA code with its host code, for every application."""
