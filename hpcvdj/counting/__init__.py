"""A run: reading to result, with a checkpoint; whole tables or slice by slice."""
