"""The settings of counting pathways, and the comparison of its methods."""
