"""V(D)J recombination: the alphabet, segments and their forms, pathways, models, and junctions."""
