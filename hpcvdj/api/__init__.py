"""hpcvdj for scripts and notebooks: a function for each question, with the name of the command for that question.

`hpcvdj.NAME` is the function NAME of a module here.  Its messages name Python parameters (`hpcvdj.public`).
"""
