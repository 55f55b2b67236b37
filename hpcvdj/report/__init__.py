"""`hpcvdj report`: one or more results as one self-contained HTML page, and its figures as PNG and SVG.

`survey` reads a result once, block by block; `divisions` makes lines of a junction's most direct pathways;
`figures` draws; `sections` says what stands between the figures; `page` puts all of it into the template.
"""
