"""Studies: the tables and figures of the paper and the thesis, measured again (`pages.Study`)."""
