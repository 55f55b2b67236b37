"""The result file and its parts, and the code that reads them."""
