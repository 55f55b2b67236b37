"""Which junctions individuals share."""
