"""`hpcvdj report`: one or more results as one self-contained HTML page, and its figures as PNG and SVG.

`survey` reads a result once, block by block; `elements` are what a page is made of; `charts` draws tables; `sections`
has the tables, figures and words of the page; `page` writes it.
"""
