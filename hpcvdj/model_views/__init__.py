"""What `hpcvdj models` shows of recombination models: a page of one, how much two differ, likelihoods under several."""
