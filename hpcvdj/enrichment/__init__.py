"""Which clonotypes have more neighbours than chance explains."""
