"""Tables of Adaptive immunoSEQ and of immunarch: junctions and names are those of slow, obvious references."""

import csv
import gzip
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hpcvdj
from hpcvdj.recombination.alphabet import AMINO_ACIDS
from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind
from hpcvdj.recombination.packaged import germline_paths
from hpcvdj.repertoires.formats import adaptive_names
from hpcvdj.repertoires.formats.adaptive_names import end_of_j, imgt_names, species_of
from hpcvdj.repertoires.formats.format import REASON, Opening
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.repertoires.readers import MemoryReader, open_table
from hpcvdj.repertoires.reading import Reading
from tests.rows import read_batches

SHARED = Path(__file__).resolve().parents[3] / "shared" / "formats"
FIELDS = ["v_call", "j_call", "junction", "duplicate_count", "productive", REASON]

needs_examples = pytest.mark.skipif(not SHARED.is_dir(), reason="the examples are not part of the repository")


def rows_of(table, columns):
    return pa.Table.from_batches(list(MemoryReader(table).batches(columns))).to_pylist()


def rows_of_file(path, columns=FIELDS):
    reader = open_table(path)
    known = [name for name in columns if name == REASON or name in reader.columns]
    return pa.Table.from_batches(list(reader.batches(known))).to_pylist()


def translated(bases):
    return "".join(AMINO_ACIDS.get(bases[k : k + 3], "?") for k in range(0, len(bases) - 2, 3))


# --- the examples


@needs_examples
def test_the_examples_are_read_as_expected():
    with open(SHARED / "examples" / "expected.tsv") as file:
        expected = [row for row in csv.DictReader(file, delimiter="\t") if row["file"].startswith("adaptive")]
    assert len(expected) >= 10
    for row in expected:
        got = rows_of_file(SHARED / "examples" / row["file"])[int(row["row"]) - 1]
        assert got["duplicate_count"] == row["duplicate_count"], row
        if row["note"].startswith("excluded"):
            assert got[REASON], row
            assert got["junction"] == "", row
            continue
        assert got[REASON] == "", row
        # The reduced table has no frames.
        wanted = ["v_call", "j_call", "junction", *["productive"] * ("productive" in got)]
        assert [got[name] for name in wanted] == [row[name] for name in wanted], row


# --- headers

READ = "ACATTCGGATTACCTGTACTTC" + "TGTGCCAGCAGTTACTCGGTACGAACGGATTACGAGCAGTACTTC" + "GGGCCG"
JUNCTION = READ[22:-6]
PROTEIN = translated(JUNCTION)
V, J = ("TCRBV06-05*01", "TCRBV06-05", "TCRBV06", "01"), ("TCRBJ02-07*01", "TCRBJ02-07", "TCRBJ02", "01")

VERSIONS = {
    "bio": {"rearrangement": READ, "bio_identity": "x", "amino_acid": PROTEIN, "templates": "7", "frame_type": "In",
            "v_index": "22", "cdr3_length": "45", "v_resolved": V[0], "j_resolved": J[0], "sample_name": "s"},
    "snake": {"rearrangement": READ, "amino_acid": PROTEIN, "templates": "null", "reads": "7", "frame_type": "In",
              "v_index": "22", "cdr3_length": "45", "v_gene": V[1], "v_allele": V[3], "j_gene": J[1], "j_allele": J[3],
              "v_gene_ties": "", "sample_name": "s"},
    "camel": {"nucleotide": READ, "aminoAcid": PROTEIN, "count (templates/reads)": "7", "sequenceStatus": "In",
              "vIndex": "22", "cdr3Length": "45", "vMaxResolved": V[0], "vGeneName": V[1], "jMaxResolved": J[0]},
    "2012": {"container": "s", "nucleotide": READ, "aminoAcid": PROTEIN, "copy": "7", "cdr3Length": "45",
             "VIndex": "22", "VGeneName": V[0], "JGeneName": J[0], "sequenceStatus": "Productive"},
    "reduced": {"sample_name": "s", "templates": "7", "amino_acid": PROTEIN, "rearrangement": READ,
                "v_resolved": V[0], "j_resolved": J[0]},
}  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_of_the_header(tmp_path, version):
    values = VERSIONS[version]
    path = tmp_path / "a.tsv"
    path.write_text("\t".join(values) + "\r\n" + "\t".join(values.values()) + "\r\n")
    (row,) = rows_of_file(path, [*FIELDS, "repertoire_id", "locus", "junction_aa"])
    assert row == {
        "v_call": "TRBV6-5*01", "j_call": "TRBJ2-7*01", "junction": JUNCTION, "duplicate_count": "7", "locus": "TRB",
        "junction_aa": PROTEIN, REASON: "", "productive": "T",
        **({"repertoire_id": "s"} if version != "camel" else {}),
    }  # fmt: skip
    everything = pa.Table.from_batches(list(read_batches(path))).to_pylist()[0]
    kind = {"rearrangement_type": "observed", "adaptive_rearrangement_type": values.get("rearrangement_type")}
    kept = values | (kind if "rearrangement_type" in values else {})
    assert kept.items() <= everything.items()


def test_a_table_that_is_said_to_be_adaptives_but_lacks_the_read(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("v_resolved\tj_resolved\nTCRBV06-05\tTCRBJ02-07\n")
    with pytest.raises(hpcvdj.InputError, match="no column rearrangement"):
        list(read_batches(path, None, Opening("adaptive")))


def test_counts_and_missing_values():
    values = VERSIONS["snake"] | {"v_gene": "unresolved", "v_allele": "no data", "amino_acid": "na"}
    counts = [("null", "3"), ("0", "4"), ("5", "6"), ("0", "null"), ("", "-1"), ("na", "0")]
    rows = [values | {"templates": templates, "reads": reads} for templates, reads in counts]
    got = rows_of(pa.Table.from_pylist(rows), ["duplicate_count", "v_call", "junction_aa"])
    assert [row["duplicate_count"] for row in got] == ["3", "4", "5", "0", "", "0"]
    assert {(row["v_call"], row["junction_aa"]) for row in got} == {("", "")}


def test_a_value_with_the_separator_of_values_has_no_call():
    rows = [VERSIONS["snake"] | {"v_gene": name} for name in ("TCRBV06-05", "TCRBV06\x1f01", "\x1f")]
    assert [row["v_call"] for row in rows_of(pa.Table.from_pylist(rows), ["v_call"])] == ["TRBV6-5*01", "", ""]


def test_a_data_frame():
    pandas = pytest.importorskip("pandas")
    values = VERSIONS["bio"] | {"v_index": 22, "cdr3_length": 45, "templates": 7}
    frame = pandas.DataFrame([values, values | {"v_index": None, "cdr3_length": None, "templates": None}])
    got = rows_of(frame, ["junction", "duplicate_count", REASON])
    assert [row["junction"] for row in got] == [JUNCTION, JUNCTION]
    assert [row["duplicate_count"] for row in got] == ["7", ""]
    counted = hpcvdj.count(frame, germline_paths()["human_trb"])
    assert len(counted) == 2
    assert counted["pathways_total"].notna().all()


# --- cutting

FULL, SHORT = "TCRBJ02-07*01", "TCRBJ02"
ENDS = {FULL: "CTCCTACGAGCAGTACTTC", "TCRBJ01-01": "TGAACACTGAAGCTTTCTTT", SHORT: "", "TCRBJ01-01,TCRBJ01-03": "TTT",
        "unresolved": "", "TCRBJ09-01": ""}  # fmt: skip


def completed(read, start, length, end):
    """The junction, with the bases of J that the read lacks; None if it cannot be completed."""
    lacking = start + length - len(read)
    if lacking <= 0:
        return read[start : start + length]
    if start >= len(read) or lacking > len(end):
        return None
    if lacking > 3:
        before = end[: len(end) - lacking][-6:]
        if len(before) < 6 or start + 6 > len(read) or read[-6:].upper() != before:
            return None
    return read[start:] + end[len(end) - lacking :]


def reference(row):
    """The junction of a row, and the kind of its reason, by the rules of docs/file_format.md; obvious and slow."""
    read, end = row["rearrangement"], ENDS[row["j_resolved"]]
    protein = "" if row["amino_acid"] in ("", "na") else row["amino_acid"]
    start, length = (
        int(text) if re.fullmatch(r"-?\d+", text) else None for text in (row["v_index"], row["cdr3_length"])
    )
    if not read:
        return "", None
    if start is None or length is None:
        if not protein:
            return "", ExclusionKind.UNPLACED
        size = 3 * len(protein)
        within = [read[k : k + size] for k in range(len(read) - size + 1)]
        places = [text for text in within if translated(text.upper()) == protein]
        beyond = [completed(read, k, size, end) for k in range(max(0, len(read) - size + 1), len(read))]
        places = places or [text for text in beyond if text and translated(text.upper()) == protein]
        if not places:
            cut = [
                translated(read[k:].upper()) for k, text in zip(range(-len(beyond), 0), beyond, strict=True) if not text
            ]
            begun = any(len(text) >= 5 and protein.startswith(text) for text in cut)
            return "", ExclusionKind.READ_ENDS if begun else ExclusionKind.UNPLACED
        if len(places) > 1:
            return "", ExclusionKind.UNPLACED
        junction = places[0]
    elif start < 0:
        return "", ExclusionKind.INCOMPLETE
    elif length <= 0:
        return "", None
    else:
        junction = completed(read, start, length, end)
        if junction is None:
            return "", ExclusionKind.READ_ENDS
    if len(junction) < 3:
        return junction, None
    if row["frame_type"] == "In" and protein:
        own = translated(junction.upper())
        if len(junction) != 3 * len(protein) or any(a not in ("?", b) for a, b in zip(own, protein, strict=True)):
            return "", ExclusionKind.OTHER_AMINO_ACIDS
    first = junction[:3].upper()
    if set(first) <= set("ACGT") and first not in ("TGT", "TGC"):
        return "", ExclusionKind.NO_CYSTEINE
    return junction, None


bases = st.text("ACGT", max_size=30)


@st.composite
def hostile_rows(draw):
    """A row whose read mostly has a junction, and whose other values mostly are those of it."""
    name = draw(st.sampled_from(sorted(ENDS)))
    from_j = draw(st.sampled_from(["CTCCTACGAGCAGTACTTC", "TGAACACTGAAGCTTTCTTT", "TGTCTCTGC"]))
    junction = draw(st.sampled_from(["TGT", "TGC", "TGTGCCAGCAGT", "CTG", ""])) + draw(bases) + from_j
    junction = junction[len(junction) % 3 if draw(st.booleans()) else 0 :]
    upstream, after = draw(bases), draw(st.sampled_from(["GGGCCG", "", "GGG", junction]))
    read = upstream + junction + after
    read = read[: len(read) - draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4, 6, 7, 9, 15, 200]))] if not after else read
    if draw(st.booleans()) and read:
        place = draw(st.integers(0, len(read) - 1))
        read = read[:place] + draw(st.sampled_from("ACGTNnacgt-")) + read[place + 1 :]
    start, length = len(upstream), len(junction)
    wrong = st.sampled_from(["-1", "0", "", "null", "no data", "x", "3", "999999999", "12345678901234567890", "7"])
    whole = translated(junction) if length % 3 == 0 else ""
    return {
        "rearrangement": read,
        "amino_acid": draw(st.sampled_from([whole, whole, whole, "na", "", "CASSF", "C" * 40])),
        "frame_type": draw(st.sampled_from(["In", "Out", "Stop"])),
        "v_index": draw(wrong) if draw(st.integers(0, 4)) == 0 else str(start + draw(st.sampled_from([0, 0, 0, 1]))),
        "cdr3_length": draw(wrong) if draw(st.integers(0, 4)) == 0 else str(length),
        "v_resolved": "TCRBV06-05*01",
        "j_resolved": name,
    }


def test_the_reference_has_the_ends_of_j():
    assert {name: end_of_j("human", ",".join(imgt_names("human", name))) for name in ENDS} == ENDS


@pytest.mark.exhaustive
@given(st.lists(hostile_rows(), min_size=1, max_size=30))
@settings(max_examples=300, deadline=None)
def test_junctions_are_those_of_the_reference(rows):
    # Numbers of more than nine digits are no positions in a read.
    for row in rows:
        if len(row["v_index"]) > 9:
            row["v_index"] = "x"
        if len(row["cdr3_length"]) > 9:
            row["cdr3_length"] = "x"
    table = pa.Table.from_pylist(rows)
    for row, got in zip(rows, rows_of(table, ["junction", REASON]), strict=True):
        kind = Exclusion.from_text(got[REASON]).kind if got[REASON] else None
        assert (got["junction"], kind) == reference(row), row
    germline = hpcvdj.read_germline(germline_paths()["human_trb"])
    junctions = read_table(table, germline, Reading())
    accounted = sorted([*junctions.row.tolist(), *junctions.excluded.row.tolist()])
    assert accounted == list(range(len(rows)))
    counted = {
        int(row): text.decode() for row, text in zip(junctions.row, junctions.cdr3_bytes(slice(0, None)), strict=True)
    }
    for row, text in counted.items():
        assert reference(rows[row])[0].upper()[3:-3] == text


@pytest.mark.exhaustive
def test_the_rows_of_the_property_test_reach_every_reason():
    seen = set()

    @given(hostile_rows())
    @settings(max_examples=2000, deadline=None, derandomize=True, database=None)
    def look(row):
        junction, kind = reference(row)
        seen.add(kind or bool(junction))

    look()
    assert seen == {
        True, False, ExclusionKind.INCOMPLETE, ExclusionKind.READ_ENDS, ExclusionKind.OTHER_AMINO_ACIDS,
        ExclusionKind.NO_CYSTEINE, ExclusionKind.UNPLACED,
    }  # fmt: skip


def test_places_near_the_end_of_the_read():
    """Cases that random rows hardly reach."""
    row = VERSIONS["bio"] | {"frame_type": "Out", "amino_acid": "na"}
    early = READ[: -6 - 7]
    placed = row | {"v_index": "no data", "amino_acid": PROTEIN}
    rows = [
        # The compared bases would be from before the junction.
        row | {"rearrangement": early, "v_index": str(len(early) - 3), "cdr3_length": "10"},
        # The read has nothing of the junction.
        row | {"rearrangement": early, "v_index": str(len(early)), "cdr3_length": "3"},
        row | {"rearrangement": "", "v_index": "0", "cdr3_length": "3"},
        # A place within the read is preferred to one at its end.
        placed | {"rearrangement": READ.replace("TGTGCC", "TGCGCC") + early},
        placed | {"rearrangement": early},
        placed | {"rearrangement": READ + READ},
    ]
    got = rows_of(pa.Table.from_pylist(rows), ["junction", REASON])
    kinds = [Exclusion.from_text(row[REASON]).kind if row[REASON] else None for row in got]
    assert kinds == [ExclusionKind.READ_ENDS] * 2 + [None] * 3 + [ExclusionKind.UNPLACED]
    assert [row["junction"] for row in got] == ["", "", "", JUNCTION.replace("TGTGCC", "TGCGCC"), JUNCTION, ""]
    assert [reference(row)[0] for row in rows] == [row["junction"] for row in got]


def test_letters_beyond_ascii_are_no_bases():
    rows = [VERSIONS["bio"] | {"rearrangement": READ[:30] + "\u00e9" + READ[32:]}]
    (row,) = rows_of(pa.Table.from_pylist(rows), ["junction", REASON])
    assert row == {"junction": READ[22:30] + "??" + READ[32:-6], REASON: ""}


def test_what_the_reasons_say():
    bio = VERSIONS["bio"]
    rows = [
        bio | {"rearrangement": READ[:-20]}, bio | {"v_index": "23", "amino_acid": "na"},
        bio | {"amino_acid": PROTEIN[:-1] + "W"}, bio | {"v_index": "-1"},
        bio | {"v_index": "no data", "amino_acid": ""}, bio | {"v_index": "no data", "amino_acid": "CAW"},
    ]  # fmt: skip
    texts = [str(Exclusion.from_text(row[REASON])) for row in rows_of(pa.Table.from_pylist(rows), [REASON])]
    assert texts == [
        "the read ends 14 nt before the junction's end, and J does not complete it",
        "junction begins with GTG, not with the codon of Cys 104 (TGT, TGC)",
        "junction does not fit its amino acids",
        "incomplete rearrangement: the read has no V",
        "amino acids do not show where in the read the junction is: there are none",
        "amino acids do not show where in the read the junction is: they fit nowhere",
    ]


# --- the species


def test_the_species_of_a_table(caplog):
    adaptive_names._tell_both.cache_clear()
    assert species_of([("TCRBV13-03*01", 5), ("TCRBV13-01", 2)]) == "mouse"
    assert species_of([("TCRBV13-03*01", 5), ("TCRBV06-05", 7)]) == "human"
    assert species_of([]) == "human"
    assert not caplog.records
    assert species_of([("TCRBV20-01", 5), ("TCRBJ02-07", 5)]) == "human"
    assert species_of([("TCRBV20-01", 5)]) == "human"
    assert caplog.text.count("has only V and J genes that human and mouse have: they are read as human ones") == 1
    caplog.clear()
    assert species_of([("TCRBV06-05", 1), ("TCRBV13-03*01", 1)]) == "human"
    assert not caplog.records, "each has genes of one species"
    values = VERSIONS["bio"] | {"v_resolved": "TCRBV13-01"}
    both = pa.Table.from_pylist([values, values | {"v_resolved": "TCRBV31-01"}])
    assert [row["v_call"] for row in rows_of(both, ["v_call"])] == ["TRBV13-1", "TRBV31"]
    assert [row["v_call"] for row in rows_of(both.slice(0, 1), ["v_call"])] == ["TRBV13"]
    # The column decides, if the table has it.
    for species, call in (("Mouse", "TRBV13-1"), ("Mus musculus", "TRBV13-1"), ("human", "TRBV13"), ("", "TRBV13")):
        stated = both.slice(0, 1).append_column("species", pa.array([species]))
        assert [row["v_call"] for row in rows_of(stated, ["v_call"])] == [call]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_text_tells_its_species_from_its_beginning(tmp_path, monkeypatch, end, packed):
    monkeypatch.setattr("hpcvdj.repertoires.readers.text._HEADER_BYTES", 700)
    values = VERSIONS["reduced"]
    mouse, human, either = (values | {"v_resolved": name} for name in ("TCRBV13-03", "TCRBV06-05", "TCRBV05-01"))
    lines = ["\t".join(row) for row in (values, *(row.values() for row in [mouse] * 3 + [human] * 50 + [either]))]
    path = tmp_path / "a.tsv"
    data = end.join([*lines, ""]).encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    rows = rows_of_file(path, ["v_call", "j_call"])
    # In human, the last one is TRBV5-1.
    assert [row["v_call"] for row in rows] == ["TRBV13-3"] * 3 + ["TRBV6-5"] * 50 + ["TRBV5"]
    path.write_bytes(data[:-1] + b"\xe9\n")
    with pytest.raises(hpcvdj.InputError, match="not UTF-8"):
        rows_of_file(path)


def test_what_is_excluded_stays_so_when_it_is_converted(tmp_path):
    """The amino acids of a row whose junction does not fit them were counted from the converted table."""
    values = VERSIONS["bio"]
    rows = [values, values | {"v_index": "23"}]
    (tmp_path / "a.tsv").write_text("\n".join("\t".join(row) for row in [values, *(row.values() for row in rows)]))
    hpcvdj.convert(tmp_path / "a.tsv", tmp_path / "airr.tsv")
    read = [hpcvdj.pgen(tmp_path / name, "human_trb_m15", sequence_field="junction_aa").to_pandas()
            for name in ("a.tsv", "airr.tsv")]  # fmt: skip
    for frame in read:
        assert frame["pgen_aa"].notna().tolist() == [True, False]
    assert read[0]["pgen_aa"][0] == read[1]["pgen_aa"][0]


# --- immunarch


def test_immunarch(tmp_path):
    path = tmp_path / "a.tsv"
    header = ["Clones", "Proportion", "CDR3.nt", "CDR3.aa", "V.name", "D.name", "J.name", "Sequence"]
    rows = [
        ["5.0", "0.5", JUNCTION, PROTEIN, "TRBV6-1", "NA", "TRBJ2-7", "NA"],
        ["3", "0.3", JUNCTION + "A", "CA~SF", "TRBV6-2, TRBV6-3", "TRBD1", "TRBJ1-1", "NA"],
        ["2", "0.2", JUNCTION, "CASSF", "TRBV2", "NA", "TRBJ2-7", "NA"],
    ]
    path.write_text("# Exported from immunarch 0.5.6\n" + "\n".join("\t".join(row) for row in [header, *rows]) + "\n")
    got = rows_of_file(path, [*FIELDS, "d_call"])
    # R may write whole numbers as decimals.
    assert [row["duplicate_count"] for row in got] == ["5", "3", "2"]
    assert [row["v_call"] for row in got] == ["TRBV6-1", "TRBV6-2,TRBV6-3", "TRBV2"]
    assert [row["d_call"] for row in got] == ["", "TRBD1", ""]
    assert [row["productive"] for row in got] == ["T", "F", "T"]
    assert [row["junction"] for row in got] == [JUNCTION, JUNCTION + "A", ""]
    assert [row[REASON] for row in got] == ["", "", Exclusion.of(ExclusionKind.OTHER_AMINO_ACIDS).text]


def test_immunarch_of_adaptives_tables(tmp_path, caplog):
    path = tmp_path / "a.tsv"
    rows = [
        ["Clones", "CDR3.nt", "CDR3.aa", "V.name", "J.name"],
        ["5", JUNCTION + "GGGCCG", PROTEIN, "TRBV6-1", "TRBJ2-7"],
        ["3", JUNCTION + "GGGCCG", PROTEIN, "TRBV20-1", "TRBJ2-7"],
        ["3", JUNCTION + "AGGGCCG", "", "TRBV2-1", "TRBJ2-7"],
    ]
    path.write_text("\n".join("\t".join(row) for row in rows) + "\n")
    got = rows_of_file(path)
    assert [row["v_call"] for row in got] == ["TRBV6", "TRBV20-1", "TRBV2"]
    assert [row["junction"] for row in got] == [JUNCTION, JUNCTION, ""]
    assert [bool(row[REASON]) for row in got] == [False, False, True]
    assert len([record for record in caplog.records if "immunoSEQ reads" in record.message]) == 1


def test_several_chains_in_a_row_of_immunarch(tmp_path):
    path = tmp_path / "a.tsv"
    rows = [
        ["Clones", "CDR3.nt", "CDR3.aa", "V.name", "J.name"],
        ["5", JUNCTION, PROTEIN, "TRBV6-1", "TRBJ2-7"],
        ["5", f"{JUNCTION};{JUNCTION}", f"{PROTEIN};{PROTEIN}", "TRAV1-2;TRBV9", "TRAJ33;TRBJ2-7"],
    ]
    path.write_text("\n".join("\t".join(row) for row in rows) + "\n")
    got = rows_of_file(path, [*FIELDS, "junction_aa"])
    assert [row["junction"] for row in got] == [JUNCTION, ""]
    assert [row["junction_aa"] for row in got] == [PROTEIN, ""]
    assert [row[REASON] for row in got] == ["", Exclusion.of(ExclusionKind.SEVERAL_CHAINS).text]
