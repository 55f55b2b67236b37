"""Counting pathways: how, and whether every method gives the same."""
