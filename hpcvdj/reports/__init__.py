"""`hpcvdj report`: the outputs of hpcvdj as one self-contained HTML page, and its figures as PNG and SVG.

`outputs` reads the files, those of `count` and `pgen` with `survey`; `repertoires` are what the others tell.
`support`, `findings`, `associations`, `fits`, `samples` and `sections` make the sections of the page from `elements`,
with the figures of `charts`.  `page` writes it.
Tables are those of DataTables, which itables brings; figures are drawn by Vega-Lite, which vl_convert brings.
"""
