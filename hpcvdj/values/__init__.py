"""Values of rows: what `hpcvdj count` and `hpcvdj pgen` share, from tables to a result."""
