"""What notebooks show of an answer."""

from dataclasses import dataclass

import pyarrow as pa

import hpcvdj
from hpcvdj.chance.shown import Shown


@dataclass(frozen=True)
class Answer(Shown):
    table: pa.Table

    def __repr__(self):
        return "<Answer of 2 tables>"


def test_the_first_rows_are_shown():
    table = pa.table({"v_call": ["TRBV<1>", None], "p_value": [0.000123456, None], "n": [3, 4]})
    assert Answer(table)._repr_html_() == (
        "<p>&lt;Answer of 2 tables&gt;</p><table><thead><tr><th>v_call</th><th>p_value</th><th>n</th></tr></thead>"
        "<tbody>"
        "<tr><td>TRBV&lt;1&gt;</td><td>0.0001235</td><td>3</td></tr><tr><td></td><td></td><td>4</td></tr></tbody></table>"
    )
    long = Answer(pa.table({"n": range(12)}))._repr_html_()
    assert long.count("<tr><td>") == 10
    assert long.endswith("<p>12 rows, of which 10 are shown</p>")


def test_an_enrichment_is_shown_in_a_line():
    drawn = hpcvdj.generate("human_trb_m15", 3_000, seed=5, productive=True, backend="cpu")
    found = hpcvdj.enrich(drawn, "human_trb_m15", kappa=1.0, backend="cpu")
    assert repr(found) == f"<Enrichment of {found.clonotypes:,} clonotypes: 0 hits in 0 clusters>"
    assert "<th>junction_aa</th>" in found._repr_html_()
