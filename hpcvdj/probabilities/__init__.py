"""Generation probabilities of junctions: what `hpcvdj pgen` computes."""
