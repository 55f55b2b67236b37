"""V(D)J recombination: the alphabet, the segments and their forms, what a pathway is, junctions made from them."""
