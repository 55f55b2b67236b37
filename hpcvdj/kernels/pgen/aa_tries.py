"""Prefix trees in preorder, as the amino-acid kernel on a GPU walks them: without a stack."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.kernels.pgen.tables import Tries

NODE = np.dtype([("alone", np.float64), ("skip", np.int32), ("depth", np.int16), ("bases", np.int16)])
"""The kernel's struct Node: `skip` is the first node that does not begin with this one's text."""


def preorder(tries: Tries) -> NDArray[Any]:
    """The nodes of prefix trees, NODE [nodes]: each tree's in preorder, where its nodes were before."""
    nodes = np.zeros(len(tries.alone), dtype=NODE)
    skip, depth, bases = (np.empty(len(nodes), dtype=np.int32) for _ in range(3))
    _walk(tries.root, tries.child, tries.alone, nodes["alone"], skip, depth, bases)
    nodes["skip"], nodes["depth"], nodes["bases"] = skip, depth, bases
    return nodes


@njit(cache=True, nogil=True)
def _walk(root, child, alone, new_alone, skip, depth, bases):  # type: ignore[no-untyped-def]
    """Fill the new nodes; the children of a node come in the order of their bases."""
    stack = np.empty((4 * 256 + 4, 3), dtype=np.int64)
    for first in root:
        place, size = first, 1
        stack[0, 0], stack[0, 1], stack[0, 2] = first, 0, 0
        while size:
            size -= 1
            node, own_depth, own_bases = stack[size, 0], stack[size, 1], stack[size, 2]
            new_alone[place], depth[place], bases[place] = alone[node], own_depth, own_bases
            place += 1
            for base in range(3, -1, -1):
                if child[node, base] >= 0:
                    stack[size, 0] = child[node, base]
                    stack[size, 1] = own_depth + 1
                    stack[size, 2] = (own_bases << 2 | base) & 63
                    size += 1
        # A node ends where the next one is not deeper.
        for own in range(place - 1, first - 1, -1):
            following = own + 1
            while following < place and depth[following] > depth[own]:
                following = skip[following]
            skip[own] = following
