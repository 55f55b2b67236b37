"""Wrong alleles of published models: they are corrected when a model is read, or named if its files do not tell how.

The known faults are entries of the anchors files with which the germline tables are made (`inputs/germline/anchors`).
An entry applies only if the sequence in the model reads as the entry says, and an anchor is moved only from where the
entry says that it was published.  So a model of another source stays as it
is, and so does a model that hpcvdj inferred from a corrected one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product

from hpcvdj.recombination.anchors import AnchorEntry, allele_in, read_anchors
from hpcvdj.recombination.germline import V_AND_J
from hpcvdj.recombination.packaged import anchors_paths

_PUT_RIGHT = ", put right here"
"""The text after this in a note is not about the model."""

_GENES = re.compile(r"^%([^;\n]+);([A-Za-z]+);", re.MULTILINE)


@dataclass(frozen=True)
class Checked:
    """The files of a model after the check.

    texts      the texts of the files, corrected
    corrected  what was wrong with each allele that was corrected
    faults     what is wrong with each allele that was not
    """

    texts: dict[str, str]
    corrected: dict[str, str]
    faults: dict[str, str]


@cache
def _known() -> tuple[AnchorEntry, ...]:
    """Return the entries that say what a sequence reads; others do not tell whether a model has that sequence."""
    return tuple(entry for path in anchors_paths() for entry in read_anchors(path).values() if entry.reads)


def checked(files: Mapping[str, str], *, published: bool) -> Checked:
    """Find alleles that are known to be wrong, and correct them.

    files      the texts of a model's files, in the order parameters, marginals, anchors of V, anchors of J
    published  leave every allele as it is
    """
    parameters, _, *anchors = files
    alleles = {allele_in(name): (name, sequence.upper()) for name, sequence in _GENES.findall(files[parameters])}
    texts, corrected, faults = dict(files), dict[str, str](), dict[str, str]()
    for entry, (file, kind) in product(_known(), zip(anchors, V_AND_J, strict=True)):
        if entry.allele not in alleles:
            continue
        name, sequence = alleles[entry.allele]
        row = re.compile(rf"^(\s*{re.escape(name.strip())}\s*,\s*)(\d+)", re.MULTILINE)
        match = row.search(files[file])
        if match is None:
            continue
        what = entry.refuse or entry.note.partition(_PUT_RIGHT)[0]
        wrong = _to_move(entry, sequence, int(match[2])) if entry.anchor_index else entry.describes(sequence, kind)
        if wrong and (published or not entry.anchor_index):
            faults[name.strip()] = what
        elif wrong:
            corrected[name.strip()] = what
            gene = re.compile(rf"^(%{re.escape(name)};)[A-Za-z]+", re.MULTILINE)
            texts[parameters] = gene.sub(rf"\g<1>{entry.oriented(sequence)}", texts[parameters])
            texts[file] = row.sub(rf"\g<1>{entry.anchor_index}", texts[file])
    return Checked(texts, corrected, faults)


def _to_move(entry: AnchorEntry, sequence: str, anchor: int) -> bool:
    """Return whether an allele has the published sequence and the wrong anchor that was published with it."""
    return entry.wrong_anchor == str(anchor) and entry.oriented(sequence).startswith(
        entry.reads, int(entry.anchor_index)
    )
