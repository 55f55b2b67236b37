"""The methods on CPU cores, compiled by numba."""
