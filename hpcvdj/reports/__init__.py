"""`hpcvdj report`: the outputs of hpcvdj as one self-contained HTML page, and its figures as PNG and SVG.

`outputs` tells what each file is; `survey` reads those of `count` and `pgen` in blocks.  `elements` are what a page is
made of; `charts` draws tables; `support`, `findings` and `sections` have its tables, figures and words; `page`
writes it.
Tables are those of DataTables, which itables brings, figures those of Vega-Lite, which Altair writes.
"""
