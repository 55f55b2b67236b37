"""Convergent recombination: pathways against the individuals that share a junction."""
