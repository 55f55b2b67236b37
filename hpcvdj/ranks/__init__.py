"""Ranks: their world, what each is to do, its GPU, signals, and progress."""
