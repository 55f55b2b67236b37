"""MiXCR (github.com/milaboratory/mixcr), versions 1 to 4: tables of clones."""

import re
from collections.abc import Mapping, Sequence

from hpcvdj.repertoires.formats import steps
from hpcvdj.repertoires.formats.format import Field, Format

covered = steps.without("region_not_covered")


class Mixcr(Format):
    name = "mixcr"
    summary = "MiXCR clones"

    signatures = (frozenset({"nSeqCDR3", "allVHitsWithScore", "allJHitsWithScore"}),)
    """Columns of versions 3 and 4."""

    @staticmethod
    def _by_word(columns: Sequence[str]) -> dict[str, str]:
        """Columns by their letters and digits in lower case: versions differ in blanks, dots and capitals."""
        return {re.sub("[^a-z0-9]", "", name.lower()): name for name in reversed(columns)}

    @staticmethod
    def _hits(words: Mapping[str, str], segment: str) -> str | None:
        names = "all{}hitswithscore", "all{}hits", "best{}hit", "best{}gene", "{}hit", "{}gene"
        word = steps.first_of(list(words), *(name.format(segment) for name in names))
        return words[word] if word else None

    @staticmethod
    def recognises(columns: Sequence[str]) -> bool:
        """By the CDR3, in any version's spelling, and a column of V hits."""
        words = Mixcr._by_word(columns)
        has_cdr3 = not {"nseqcdr3", "nseqimputedcdr3"}.isdisjoint(words)
        return has_cdr3 and Mixcr._hits(words, "v") is not None

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """MiXCR's CDR3 is the junction.  Its clone numbers are ids; for single cells, together with the cell."""
        words = self._by_word(columns)

        def named(*names: str, otherwise: str) -> str:
            return words.get(steps.first_of(list(words), *names) or "", otherwise)

        count = named("uniquemoleculecount", "uniqueumicount", "readcount", "clonecount", otherwise="cloneCount")
        umis = named("uniquemoleculecount", "uniqueumicount", otherwise="")
        amino_acids = named("aaseqcdr3", "aaseqimputedcdr3", otherwise="aaSeqCDR3")
        clone, cell = named("cloneid", otherwise="cloneId"), named("tagvaluecell", "cellgroup", otherwise="")
        calls = {letter: self._hits(words, letter) for letter in "vdjc"}
        return {
            **steps.present(columns, {"sequence_id": Field((clone, cell), steps.joined) if cell else Field((clone,))}),
            **{f"{letter}_call": Field((hits,), steps.best_hits) for letter, hits in calls.items() if hits},
            "junction": Field((named("nseqcdr3", "nseqimputedcdr3", otherwise="nSeqCDR3"),), covered),
            **steps.present(columns, {
                "junction_aa": Field((amino_acids,), covered),
                "productive": Field((amino_acids,), steps.after(covered, steps.productive)),
                "locus": Field((calls["j"] or "",), steps.locus),
                "duplicate_count": Field((count,), steps.counts),
                "umi_count": Field((umis,), steps.counts),
                "cell_id": Field((cell,)),
                "clone_id": Field((clone,)),
            }),
        }  # fmt: skip
