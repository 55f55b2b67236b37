"""Generation probabilities: tables of a recombination model, and the kernels that read them."""
