"""Which clonotypes are like receptors of known specificity, and how many of these chance makes."""
