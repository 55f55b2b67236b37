"""The figures of a report, drawn by matplotlib: a module for each thing that they show.

`style` is what all look like, `scales` their axes and colours, `drawing` a figure with its words, and as a file.
Histograms are over `hpcvdj.report.survey.EDGES`; their axes count bins, labelled in pathways, so that the junctions
without a pathway have a place of their own beside the logarithmic scale.
"""
