"""Motif comparison: the k-mers that all pairs of a set's sequences have in common, within Hamming distance d.

Source: Todd, A.: Parallel Gene Upstream Comparison via Multi-Level Hash Tables on GPU, thesis, University of
Missouri-Columbia, 2016 ("the thesis").
"""
