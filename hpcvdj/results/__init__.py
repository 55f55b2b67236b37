"""The result file and its parts, and what reads them."""
