"""Does `--depth none` give the published p-values of DeWitt and others (eLife 7:e38358, 2018)?

    python benchmarks/associate_published.py pubtcrs/test/correlations/expected_output.txt

The file is of the repository phbradley/pubtcrs (MIT), which you clone yourself: hypergeometric p-values of V families
and CDR3s among 641 donors, 289 of them with CMV.  Prints how many were compared and the largest relative difference,
and exits with 1 if one differs in its six digits.
"""

import re
import sys
from pathlib import Path

import numpy as np

from hpcvdj.association.law import Laws, laws_of_cases

LINE = re.compile(r"pval: (\S+) tcr: (\S+) .*overlap: (\d+) feature_total: (\d+) tcr_total: (\d+) total: (\d+)")
DIGITS = 6e-6
"""The largest relative difference of numbers that are rounded to six digits."""


def main():
    rows = [LINE.search(line) for line in Path(sys.argv[1]).read_text().splitlines() if "overlap" in line]
    differences = []
    for row in rows:
        overlap, cases, carriers, donors = map(int, row.groups()[2:])
        case = np.arange(donors) < cases
        laws = Laws.given(np.array([[carriers]]), lambda _, m, case=case: laws_of_cases(np.ones(len(case)), case, m))
        found = laws.tails(np.array([overlap]))[0][0]
        differences.append(abs(found / float(row[1]) - 1))
        if differences[-1] > DIGITS:
            print(f"{row[2]}: {found:g}, published {row[1]}")
    print(f"{len(rows)} p-values, the largest relative difference is {max(differences):.1e}")
    sys.exit(max(differences) > DIGITS)


if __name__ == "__main__":
    main()
