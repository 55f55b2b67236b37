"""Steps that formats share: functions of columns of another program's table."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind
from hpcvdj.recombination.names import MISSING
from hpcvdj.repertoires.formats.format import Field
from hpcvdj.repertoires.productive import FALSE, TRUE, productive_rows

Step = Callable[[pa.Array], pa.Array]


def present(columns: Sequence[str], fields: Mapping[str, Field]) -> dict[str, Field]:
    """The `fields` with sources that are all among the columns of a table."""
    return {name: field for name, field in fields.items() if field.sources and set(field.sources) <= set(columns)}


def first_of(columns: Sequence[str], *names: str) -> str | None:
    """The first of `names` that is one of the columns."""
    return next((name for name in names if name in columns), None)


def after(*steps: Step) -> Step:
    return lambda column: reduce(lambda values, step: step(values), steps, column)


def without(*words: str) -> Step:
    """A step that replaces `words` by the empty string."""
    return lambda column: kept(column, pc.invert(pc.is_in(column, pa.array(words, column.type))))


def constant(text: str) -> Step:
    """A step that gives every row the same text."""
    return lambda column: pa.repeat(pa.scalar(text, pa.large_string()), len(column))


def kept(column: pa.Array, where: pa.Array) -> pa.Array:
    """The values of a column where a condition is true, else the empty string."""
    return pc.if_else(where, column, pa.scalar("", column.type))


stated = without(".")
"""A step that replaces the dot, with which vdjtools and TRUST4 write a missing value, by the empty string."""


def productive(amino_acids: pa.Array) -> pa.Array:
    """T or F: whether a junction is productive, by its amino acids; empty for junctions without amino acids."""
    return kept(_letter(productive_rows(amino_acids, "junction_aa")), pc.not_equal(amino_acids, ""))


def truth(column: pa.Array) -> pa.Array:
    """T or F for words that mean true and false; empty for other values."""
    lower = pc.utf8_lower(pc.utf8_trim_whitespace(column))
    true, false = (pc.is_in(lower, pa.array(words, lower.type)) for words in (TRUE, FALSE))
    return kept(_letter(true), pc.or_(true, false))


def _letter(condition: pa.Array) -> pa.Array:
    return pc.if_else(condition, "T", "F").cast(pa.large_string())


def counts(column: pa.Array) -> pa.Array:
    """Counts, which may be written as decimals, as whole numbers.

    Other texts stay, so that messages name them, as do numbers below a half: these are frequencies.
    """
    # AIRR's integers have no word for a missing value.
    text = without(".", *MISSING)(pc.utf8_trim_whitespace(column.cast(pa.large_string())))
    is_integer = pc.match_substring_regex(text, r"^[0-9]{1,18}$")
    if pc.all(is_integer).as_py():
        return text
    number = pc.match_substring_regex(text, r"^[0-9]{1,15}(\.[0-9]*)?([eE][+-]?[0-9]{1,2})?$")
    values = pc.if_else(number, text, pa.scalar(None, text.type)).cast(pa.float64())
    is_count = pc.and_(pc.less(values, 1e18), pc.greater_equal(values, 0.5))
    small = pc.if_else(is_count, values, pa.scalar(None, pa.float64()))
    rounded = pc.round(small, round_mode="half_up").cast(pa.int64()).cast(pa.large_string())
    return pc.if_else(is_integer, text, pc.coalesce(rounded, text))


def locus(call: pa.Array) -> pa.Array:
    """The locus of a call, such as TRB; empty if it names none."""
    return pc.replace_substring_regex(call, r"^(?:(IG[HKL]|TR[ABDG])[VDJC].*|.*)$", r"\1")


def slashed(call: pa.Array) -> pa.Array:
    """Calls with the slash of genes of two loci: TRAV29DV5 and TRAV29-DV5 become TRAV29/DV5."""
    return pc.replace_substring_regex(call, r"(TRAV[0-9DN-]*[0-9DN])-?DV([0-9])", r"\1/DV\2")


def best_hits(column: pa.Array) -> pa.Array:
    """The genes with the best score of each hit list, as a call; the first gene if no hit has a score.

    `TRBV12-3*00(401.5),TRBV12-4*00(401.5),TRBV5-1*00(90)` becomes `TRBV12-3,TRBV12-4`: allele 00 means that MiXCR did
    not determine the allele.
    """
    if not len(column):
        return column
    lists = pc.split_pattern(column, ",")
    hits, lengths = lists.flatten(), pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    # A single hit is the best, whatever its score, and most rows have one hit.
    several = np.repeat(lengths > 1, lengths)
    scores = np.zeros(len(hits))
    scores[several] = _scores(hits.filter(pa.array(several)))
    best = np.repeat(np.maximum.reduceat(scores, offsets[:-1]), lengths)
    keep = (scores == best) & (scores >= 0)
    keep[offsets[:-1]] |= best[offsets[:-1]] < 0
    kept_hits = hits.filter(pa.array(keep))
    names = pc.replace_substring_regex(kept_hits, r"^\s*([^(\s*]*)(?:\*00|(\*[^(\s]*))?.*$", r"\1\2")
    rows = np.concatenate([[0], np.cumsum(np.add.reduceat(keep, offsets[:-1], dtype=np.int64))])
    called = pa.LargeListArray.from_arrays(pa.array(rows), slashed(names))
    return pc.binary_join(called, pa.scalar(",", called.type.value_type))


def _scores(hits: pa.Array) -> NDArray[np.float64]:
    """The scores of hits; -1 for hits without a score."""
    written = pc.replace_substring_regex(
        hits, r"^.*\(([0-9]{1,15}(?:\.[0-9]{0,15})?(?:[eE][+-]?[0-9]{1,2})?)\)\s*$|^.*$", r"\1"
    )
    scores = pc.if_else(pc.equal(written, ""), "-1", written).cast(pa.float64())
    return np.asarray(scores.to_numpy(zero_copy_only=False))


def joined(first: pa.Array, second: pa.Array) -> pa.Array:
    """Two columns with `_` between their values."""
    return pc.binary_join_element_wise(first, second, pa.scalar("_", first.type))


def trimmed(column: pa.Array, letters: int) -> pa.Array:
    """Values without `letters` letters at both ends."""
    return pc.utf8_slice_codeunits(column, letters, -letters)


def reason(kind: ExclusionKind, where: pa.Array, otherwise: pa.Array | None = None) -> pa.Array:
    """`REASON` of rows: an exclusion of this kind where a condition is true, else `otherwise`."""
    return pc.if_else(where, Exclusion.of(kind).text, "" if otherwise is None else otherwise).cast(pa.large_string())
