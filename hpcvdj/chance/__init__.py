"""What a model makes by chance: drawn sequences, their probabilities, and how tables compare with them."""

DRAWS = 300_000
"""The number of productive sequences that are drawn to find out what chance makes."""
