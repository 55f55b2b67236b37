"""What recombination produces by chance: in silico junctions."""
