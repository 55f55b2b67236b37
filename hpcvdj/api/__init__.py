"""hpcvdj from a script or a notebook: one function for each question, named as the command that asks the same.

`hpcvdj.NAME` is the function NAME of a module here, with messages that speak Python (`hpcvdj.public`).
"""
