"""What a model makes by chance: sequences drawn from it, their probabilities, and what they say of a table."""

DRAWS = 300_000
"""Productive sequences that are drawn to find out what chance makes."""
