"""What `hpcvdj models` says of recombination models: their page, how different two are, their likelihoods."""
