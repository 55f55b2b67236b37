"""Values of rows: the code that `hpcvdj count` and `hpcvdj pgen` share, from tables to a result."""
