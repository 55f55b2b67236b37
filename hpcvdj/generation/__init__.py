"""In silico junctions: what recombination makes by chance."""
