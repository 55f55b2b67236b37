"""Expected counts of the events of recombination: the E step of inference."""
