"""The figure of `hpcvdj enrich`: what the network shows."""

import numpy as np
import pytest

from hpcvdj.enrichment.plot import edges_of, layout


def test_edges_are_single_exchanges_of_a_cluster():
    texts = ["CAAF", "CABF", "CBBF", "CAAW", "CCCFF"]
    assert edges_of(texts, np.array([1, 1, 1, 2, 3])).tolist() == [[0, 1], [1, 2]]
    assert edges_of([], np.empty(0, np.int64)).shape == (0, 2)


def test_clusters_do_not_overlap():
    pytest.importorskip("networkx")
    clusters = np.repeat(np.arange(1, 30), [12, 5, 5, 3, *[2] * 10, *[1] * 15])
    rows = [np.flatnonzero(clusters == cluster) for cluster in np.unique(clusters)]
    edges = np.array([[own[0], other] for own in rows for other in own[1:]])
    places = layout(edges, clusters)
    assert np.array_equal(places, layout(edges, clusters)), "the same each time"
    centres = np.array([(places[own].min(axis=0) + places[own].max(axis=0)) / 2 for own in rows])
    reach = np.array(
        [np.linalg.norm(places[own] - centre, axis=1).max() for own, centre in zip(rows, centres, strict=True)]
    )
    apart = np.linalg.norm(centres[:, np.newaxis] - centres, axis=2) - reach - reach[:, np.newaxis]
    assert apart[np.triu_indices(len(rows), 1)].min() > 0
