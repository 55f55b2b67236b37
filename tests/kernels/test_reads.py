"""hpcvdj.kernels.reads against slow definitions on strings, with reads that end at each base of a junction."""

import numpy as np
import pyarrow as pa
import pytest

from hpcvdj.kernels import reads
from hpcvdj.kernels.text import text_buffers
from hpcvdj.recombination.alphabet import CODONS, translate

JUNCTION = "TGTGCCAGCAGCTTAGGACAGGAGACCCAGTACTTC"
TAIL = "AACACCGGGGAGCTGTTTTTTGGACAGGAGACCCAGTACTTC"
LOWER = JUNCTION.lower()


def completed(read, at, size, tail):
    """The junction from `at` on, whose missing bases are the last ones of the tail; None if these cannot be added."""
    lacking = at + size - len(read)
    if lacking <= 0:
        return read[at : at + size]
    if lacking <= 3:
        return read[at:] + tail[len(tail) - lacking :] if at < len(read) and lacking <= len(tail) else None
    before = tail[: len(tail) - lacking]
    agrees = at <= len(read) - 6 and len(before) >= 6 and read[-6:].upper() == before[-6:].upper()
    return read[at:] + tail[len(tail) - lacking :] if agrees else None


def spelled(bases):
    """The amino acids of bases, ? for a codon with other letters."""
    codons = [bases[k : k + 3].upper() for k in range(0, len(bases) - 2, 3)]
    return "".join(translate([codon])[0] if set(codon) <= set("ACGT") else "?" for codon in codons)


def place_of(read, protein, tail):
    """The place, the status, and the missing bases, which are known only if the read ends."""
    if not read or not protein:
        return None, reads.NO_AMINO_ACIDS if read else reads.EMPTY, 0
    size, inside, beyond, ends = 3 * len(protein), [], [], 0
    for at in range(len(read)):
        junction = completed(read, at, size, tail)
        if junction is None:
            own = spelled(read[at:])
            ends = at + size - len(read) if len(own) >= 5 and protein.startswith(own) else ends
        elif spelled(junction) == protein:
            (inside if at + size <= len(read) else beyond).append(at)
    places = inside or beyond
    if len(places) == 1:
        return places[0], reads.CUT, 0
    return None, reads.SEVERAL if places else reads.READ_ENDS if ends else reads.NOWHERE, ends


def checked(read, protein, tail, start, size, from_cysteine):
    """The status and the detail of a junction whose place is known."""
    if not read:
        return reads.EMPTY, 0
    if start < 0:
        return reads.INCOMPLETE, 0
    if size <= 0:
        return reads.EMPTY, 0
    junction = completed(read, start, size, tail)
    if junction is None:
        return reads.READ_ENDS, start + size - len(read)
    own = spelled(junction)
    if size >= 3 and protein:
        fits = len(own) * 3 == size and len(own) == len(protein)
        if not fits or any(a not in ("?", b) for a, b in zip(own, protein, strict=True)):
            return reads.OTHER_AMINO_ACIDS, 0
    if size >= 3 and from_cysteine and own[0] not in "C?":
        return reads.NO_CYSTEINE, CODONS.index(junction[:3].upper())
    return reads.CUT, 0


def problems():
    """Reads that end at each base, with tails of each length, bases that differ before the end, and repeated places."""
    rows = []
    protein = spelled(JUNCTION)
    for end in range(len(JUNCTION) + 4):
        for tail in (TAIL, TAIL[-9:], TAIL[-8:], TAIL[-3:], TAIL[-2:], "", TAIL[:-8] + "C" + TAIL[-7:]):
            for before in ("", "GA"):
                rows.append((before + (JUNCTION + "GGGC")[:end], protein, tail))
    for wrong in range(len(JUNCTION)):
        read = JUNCTION[:wrong] + ("C" if JUNCTION[wrong] == "A" else "A") + JUNCTION[wrong + 1 :]
        rows += [(read[:24], protein, TAIL), (read, protein, TAIL), (read[:33], protein, TAIL)]
    rows += [
        (JUNCTION + JUNCTION, protein, TAIL), (JUNCTION + JUNCTION[:24], protein, TAIL), (LOWER, protein, TAIL),
        (LOWER[:24], protein, TAIL), ("", protein, TAIL), (JUNCTION, "", TAIL), ("TGTTGTTG", "CC", "TGT"),
        ("TGTTGT", "CC", "TGT"), ("TGTT", "CC", "GT"), ("NNNTGCTTT", "CF", "TTT"), ("TGNTTT", "CF", "TTT"),
        ("TGT", "C", ""), ("TGCTG", "CC", "T"), (JUNCTION[:14] + "N", protein, ""), (JUNCTION[:15], protein, ""),
        (JUNCTION[:6], protein, JUNCTION), (JUNCTION[:5], protein, JUNCTION), (JUNCTION[:6], protein, JUNCTION[1:]),
    ]  # fmt: skip
    return rows


def buffers(rows):
    return [text_buffers(pa.array(column)) for column in zip(*rows, strict=True)]


def test_places_are_those_of_a_loop_over_strings():
    rows = problems()
    start, length = np.full(len(rows), reads.UNKNOWN), np.zeros(len(rows), dtype=np.int64)
    status, detail = np.zeros(len(rows), dtype=np.uint8), np.zeros(len(rows), dtype=np.int64)
    reads.place_rows(*buffers(rows), start, length, status, detail)
    seen = set()
    for k, row in enumerate(rows):
        place, own, ends = place_of(*row)
        assert status[k] == own, row
        seen.add(own)
        if own == reads.CUT:
            assert (start[k], length[k]) == (place, 3 * len(row[1])), row
        if own == reads.READ_ENDS:
            assert detail[k] == ends, row
    assert seen == {
        reads.CUT, reads.EMPTY, reads.READ_ENDS, reads.NO_AMINO_ACIDS, reads.NOWHERE, reads.SEVERAL
    }  # fmt: skip


def test_places_that_a_table_says_are_kept():
    start, other = np.array([4, -1]), [np.zeros(2, dtype=kind) for kind in (np.int64, np.uint8, np.int64)]
    reads.place_rows(*buffers([(JUNCTION, "CF", TAIL)] * 2), start, *other)
    assert start.tolist() == [4, -1]
    assert not any(own.any() for own in other)


@pytest.mark.parametrize("from_cysteine", [True, False])
def test_checks_are_those_of_strings(from_cysteine):
    rows = [(*row, place, size) for row in problems() for place in (0, 2, -1) for size in (36, 35, 33, 3, 2, 0)]
    rows += [(read, protein, tail, 0, len(read)) for read, protein, tail in (
        ("TGNTTT", "CF", ""), ("TGNTTA", "CF", ""), ("GCNTTT", "", ""), ("TGCTTT", "", ""), ("TGTTTT", "", ""),
        ("GCATTT", "", ""), ("GCATTT", "CF", ""), ("TGTTTTGGG", "CF", ""), ("TGTTT", "", ""), ("TGTTT", "C", ""),
    )]  # fmt: skip
    start, length = (np.array([row[k] for row in rows]) for k in (3, 4))
    status, detail = np.zeros(len(rows), dtype=np.uint8), np.zeros(len(rows), dtype=np.int64)
    reads.check_rows(*buffers([row[:3] for row in rows]), start, length, from_cysteine, status, detail)
    for k, row in enumerate(rows):
        assert (status[k], detail[k]) == checked(*row, from_cysteine), row
    assert len({*status.tolist()}) == 5 + from_cysteine


def test_rows_with_a_status_are_not_checked():
    status, detail = np.full(1, reads.SEVERAL, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    reads.check_rows(*buffers([("", "", "")]), np.zeros(1, np.int64), np.zeros(1, np.int64), True, status, detail)
    assert status[0] == reads.SEVERAL


def test_copies_are_cut_and_completed():
    rows = [("AATGTé", "TTTGG"), ("TGTGCC", "AAATTC"), ("TGT", "GGG"), ("CTGTGC", "CTTC")]
    start, sizes = np.array([2, 0, 0, 1]), [5, 9, 0, 8]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    out = np.zeros(offsets[-1], dtype=np.uint8)
    reads.copy_rows(*buffers(rows), start, offsets, out)
    assert out.tobytes().decode() == "TGT??" + "TGTGCCTTC" + "" + "TGTGCTTC"


def test_the_first_byte_beyond_ascii():
    of_read = np.array([0, 2]), np.array([127, 128], dtype=np.uint8)
    out = np.zeros(2, dtype=np.uint8)
    reads.copy_rows(of_read, text_buffers(pa.array([""])), np.array([0]), np.array([0, 2]), out)
    assert out.tolist() == [127, 63]
