"""Drawing sequences from a recombination model: on CPU cores and on GPUs, from the same random numbers."""
