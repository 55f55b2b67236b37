"""`hpcvdj olga`: OLGA's options, columns and numbers, beside OLGA itself."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.commands import error_line, hpcvdj_command

AMINO = (
    "CASSTGQGNYGYTF", "CAWSVAPDRGGYTF", "CASSXTGQGNYGYTF", "CASS[AG]GQGNYGYTF", "CASS{2}TF", "CAS{1,2}GX{0,1}TF",
    "CAS*TF", "CASSBZJYTF",
)  # fmt: skip
NUCLEOTIDES = (
    "TGTGCCAGTAGTATAACAACCCAGGGCTTGTACGAGCAGTACTTC", "TGTGCCAGTAGTATAACAACCCAGGGCTTGTACGAGCAGTACTT",
    "TGTGCCAGTAGTATAACATAGCAGGGCTTGTACGAGCAGTACTTC", "tgtgccagtagtataacaacccagggcttgtacgagcagtacttc",
)  # fmt: skip
MOST = 1e-12
"""The largest relative difference that is allowed; the largest of 300 sequences is 2e-14, of IGH."""

STORED = Path(__file__).parent / "olga_outputs"
"""What OLGA 1.3.0 writes for `FILES`."""

FILES = {
    "sequences.txt": ("\n".join([*AMINO, *NUCLEOTIDES[:1], "C"]) + "\n", []),
    "genes.tsv": (
        "CASSTGQGNYGYTF\tTRBV5-1,TRBV5-4\tTRBJ1-2\nCAWSVAPDRGGYTF\tTRBV30*01\tTRBJ1-2\n\n"
        f"{NUCLEOTIDES[0]}\tTRBV19\tTRBJ2-7\n{NUCLEOTIDES[1]}\tTRBV19\tTRBJ2-7\n",
        ["--v_in", "1", "--j_in", "2"],
    ),
    "nucleotides.csv": ("".join(f"{k},{text}\n" for k, text in enumerate(NUCLEOTIDES)), ["--seq_in", "1", "-m", "3"]),
    "delimiters.txt": (
        "a head\n# a comment\nCASSTGQGNYGYTF:TRBV5-1;TRBV5-4\n\nCAWSVAPDRGGYTF:TRBV30\n",
        ["-d", ":", "--gene_mask_delimiter", ";", "--v_in", "1", "--lines_to_skip", "1", "--comment_delimiter", "#",
         "--delimiter_out", "tab"],
    ),
}  # fmt: skip


def olga(command, *words, folder):
    """OLGA's own command."""
    program = Path(sys.executable).with_name(f"olga-{command}")
    done = subprocess.run(
        [program, *map(str, words)], capture_output=True, text=True, timeout=250, check=False, cwd=folder
    )
    assert done.returncode == 0, done.stdout + done.stderr


def cells_of(path, delimiter):
    return [line.split(delimiter) for line in path.read_text().splitlines()]


def assert_equal(own, of_olga):
    """The same texts, and numbers to MOST."""
    assert [len(row) for row in own] == [len(row) for row in of_olga]
    for row, other in zip(own, of_olga, strict=True):
        for cell, expected in zip(row, other, strict=True):
            try:
                number = float(expected)
            except ValueError:
                assert cell == expected
            else:
                assert float(cell) == pytest.approx(number, rel=MOST, abs=0)


def computed(name, folder):
    """What hpcvdj writes for a file, what OLGA is asked for, and the delimiter of both outputs."""
    text, options = FILES[name]
    (folder / name).write_text(text)
    ending = Path(name).suffix
    words = ["--humanTRB", "-i", folder / name, *options, "--display_off"]
    hpcvdj_command("olga", "compute_pgen", *words, "-o", folder / f"own{ending}")
    delimiter = "," if ending == ".csv" else "\t" if ending == ".tsv" or "--delimiter_out" in options else None
    return folder / f"own{ending}", words, delimiter


@pytest.mark.olga
@pytest.mark.parametrize("name", FILES)
def test_files_beside_the_stored_output_of_olga(name, tmp_path):
    """OLGA itself takes a minute for each."""
    written, _, delimiter = computed(name, tmp_path)
    assert_equal(*(cells_of(path, delimiter) for path in (written, STORED / name)))


@pytest.mark.olga
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FILES)
def test_files_of_olga(name, tmp_path):
    written, words, delimiter = computed(name, tmp_path)
    output = tmp_path / f"olga{written.suffix}"
    olga("compute_pgen", *words, "-o", output, folder=tmp_path)
    assert_equal(*(cells_of(path, delimiter) for path in (written, output)))
    # The last digit of OLGA's numbers depends on the processor.
    assert_equal(*(cells_of(path, delimiter) for path in (STORED / name, output)))


@pytest.mark.olga
@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "kind"),
    [
        pytest.param(model, kind, marks=[pytest.mark.exhaustive] * (kind != "ntseq" or model != "--mouse_T_beta"))
        for model in ("--humanTRA", "--human_B_heavy", "--mouse_T_beta")
        for kind in ("all", "ntseq", "aaseq")
    ],
)
def test_loci_and_types(model, kind, tmp_path):
    """Of sequences that OLGA draws; of mouse TRA it loses the longest insertions (docs/olga_insertions.md)."""
    olga("generate_sequences", model, "-n", 3, "--seed", 1, "-o", tmp_path / "drawn.tsv", folder=tmp_path)
    words = [model, "-i", tmp_path / "drawn.tsv", "--v_in", 2, "--j_in", 3, "--seq_type_out", kind, "--display_off"]
    # OLGA compiles what computes faster, which takes longer than three sequences.
    olga("compute_pgen", *words, "--skip_fast_pgen", "-o", tmp_path / "olga.tsv", folder=tmp_path)
    hpcvdj_command("olga", "compute_pgen", *words, "-o", tmp_path / "own.tsv")
    own, of_olga = (cells_of(tmp_path / f"{who}.tsv", "\t") for who in ("own", "olga"))
    assert len(own) == 3
    assert_equal(own, of_olga)


@pytest.mark.olga
def test_sequences_as_arguments_and_lines_without_one(tmp_path):
    said, _ = hpcvdj_command("olga", "compute_pgen", "--humanTRB", AMINO[0], NUCLEOTIDES[0], "--v_mask", "TRBV5-1")
    lines = [line.split("\t") for line in said.splitlines()]
    assert [line[0] for line in lines] == [AMINO[0], NUCLEOTIDES[0]]
    assert float(lines[0][1]) == pytest.approx(1.0148911522754942e-08, rel=MOST)
    (tmp_path / "a.txt").write_text(f"{AMINO[0]}\n\nBOGUS1\nCASSytf\n{AMINO[1]}\n")
    for options, blank in (([], []), (["--skip_off"], [""])):
        said, logged = hpcvdj_command("olga", "compute_pgen", "--humanTRB", "-i", tmp_path / "a.txt", *options)
        assert [line.split()[0] if line else "" for line in said.splitlines()] == [AMINO[0], *blank, AMINO[1]]
        assert "2 lines have no sequence that can be read, and are left out: BOGUS1, CASSytf" in logged


@pytest.mark.olga
def test_sequences_that_repeats_of_sets_have_in_common_count_once(tmp_path):
    """[SA]{0,1}S{0,1} has S twice: its probability was counted twice. The numbers are OLGA's."""
    texts = [
        "CASS[SA]{0,1}S{0,1}YEQYF",
        "CASS[SA]{0,2}[SG]{1,2}YEQYF",
        "CASS{3,1}YEQYF",
        "CASSLGQ1YEQYF",
        "CASS[]GYEQYF",
    ]
    (tmp_path / "r.tsv").write_text("".join(f"{text}\tTRBV7-2\tTRBJ2-7\n" for text in texts))
    said, logged = hpcvdj_command(
        "olga", "compute_pgen", "--humanTRB", "-i", tmp_path / "r.tsv", "--v_in", 1, "--j_in", 2
    )
    own = dict(line.split("\t") for line in said.splitlines())
    assert list(own) == texts[:4]
    assert float(own[texts[0]]) == pytest.approx(3.099338085064542e-07, rel=1e-12)
    assert float(own[texts[1]]) == pytest.approx(1.541103866e-06, rel=1e-9)
    assert [float(own[text]) for text in texts[2:4]] == [0, 0]
    assert "left out: CASS[]GYEQYF" in logged
    # Each of the distinct sequences by itself.
    every = ["CASSYEQYF", "CASSSYEQYF", "CASSAYEQYF", "CASSSSYEQYF", "CASSASYEQYF"]
    said, _ = hpcvdj_command("olga", "compute_pgen", "--humanTRB", *every, "--v_mask", "TRBV7-2", "--j_mask", "TRBJ2-7")
    assert sum(float(line.split("\t")[1]) for line in said.splitlines()) == pytest.approx(
        float(own[texts[0]]), rel=1e-12
    )


@pytest.mark.olga
def test_lines_without_a_column_or_a_gene_are_named(tmp_path):
    """They had any gene, which is 19 times as probable, without a word."""
    for text, options, message in (
        ("CASSLGQAYEQYF\tTRBV7-2\tTRBJ2-7\n", ["--v_in", 4], "line 1: has 3 column(s), so none for --v_in 4"),
        ("A\tB\nCASSLGQAYEQYF\tTRBV7-2\n", ["--j_in", 2, "--lines_to_skip", 1], "line 2: has 2 column(s), so none for"),
        ("CASSLGQAYEQYF\t\tTRBJ2-7\n", ["--v_in", 1], "line 1: no gene in the column of --v_in 1"),
        ("CASSLGQAYEQYF\n", ["--seq_in", 9], "line 1: has 1 column(s), so none for --seq_in 9"),
    ):
        (tmp_path / "a.tsv").write_text(text)
        words = ["olga", "compute_pgen", "--humanTRB", "-i", tmp_path / "a.tsv", *options]
        assert message in error_line(hpcvdj_command(*words, code=2)[1])


@pytest.mark.olga
def test_a_folder_has_the_alleles_of_its_files(tmp_path):
    """As the model of that name has; they were corrected, by which numbers differed by 10^13."""
    junction = "TGTGCCTGGAGTCTAGGGGGGCGACAAGACACCCAGTACTTT"
    folder = Path(find_spec("olga").origin).parent / "default_models" / "mouse_T_beta"
    said = [
        hpcvdj_command("olga", "compute_pgen", *model, junction, "--v_mask", "TRBV31", "--j_mask", "TRBJ2-5")[0]
        for model in (["--mouseTRB"], ["--set_custom_model_VDJ", folder])
    ]
    assert said[0] == said[1]
    assert float(said[0].split("\t")[1]) == pytest.approx(5.08236e-22, rel=1e-5)


@pytest.mark.olga
def test_an_alphabet_of_ones_own(tmp_path):
    (tmp_path / "alphabet.txt").write_text("o: A, G\n")
    said, _ = hpcvdj_command(
        "olga", "compute_pgen", "--humanTRB", "CASSoGQGNYGYTF", "CASS[AG]GQGNYGYTF", "-a", tmp_path / "alphabet.txt"
    )
    own, other = (line.split("\t")[1] for line in said.splitlines())
    assert own == other


@pytest.mark.olga
def test_drawn_sequences_have_the_columns_of_olga(tmp_path):
    words = ["olga", "generate_sequences", "--humanTRB", "-n", 50, "--seed", 3]
    hpcvdj_command(*words, "-o", tmp_path / "drawn.csv")
    rows = cells_of(tmp_path / "drawn.csv", ",")
    assert len(rows) == 50
    assert all(len(nt) == 3 * len(aa) and v.startswith("TRBV") and j.startswith("TRBJ") for nt, aa, v, j in rows)
    assert hpcvdj_command(*words, "--seq_type", "aaseq", "--record_genes_off")[0].split() == [row[1] for row in rows]
    assert hpcvdj_command(*words, "--seq_type", "nucleotide")[0].split()[::3] == [row[0] for row in rows]
    unseeded = words[:-2]
    assert hpcvdj_command(*unseeded)[0] != hpcvdj_command(*unseeded)[0]


@pytest.mark.olga
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compute_pgen", AMINO[0]], "0 models; give one, as in --humanTRB"),
        (["compute_pgen", AMINO[0], "--humanTRB", "--humanTRA"], "2 models; give one"),
        (["compute_pgen", "--humanTRB"], "give sequences, or a file of them with --infile, one of the two"),
        (["compute_pgen", "--humanTRB", AMINO[0], "--v_mask", "TRBV99"], "sequence 1: TRBV99 is not in human_trb"),
        (["compute_pgen", "--humanTRB", "-i", "none.tsv"], "none.tsv: no such file of sequences"),
        (["compute_pgen", "--humanTRB", "CX{0,9999}X{0,9999}F"], "its repeats stand for more than 10,000 sequences"),
        (
            ["compute_pgen", "--humanTRB", "-i", "none.tsv", "--v_mask", "TRBV19"],
            "name the columns with --v_in and --j_in",
        ),
        (["generate_sequences", "--humanTRB", "-n", "0"], "-n"),
        (["compute_pgen", "--set_custom_model_VDJ", "none", AMINO[0]], "none: no folder of a model"),
    ],
)
def test_wrong_usage_is_one_line(words, message, tmp_path):
    _, logged = hpcvdj_command("olga", *words, code=2, cwd=tmp_path)
    assert message in logged
    if "generate" not in words[0]:
        assert message in error_line(logged)


@pytest.mark.olga
def test_a_file_that_exists_stays(tmp_path):
    (tmp_path / "out.tsv").write_text("mine\n")
    words = ["olga", "compute_pgen", "--humanTRB", "-i", tmp_path / "a.txt", "-o", tmp_path / "out.tsv"]
    (tmp_path / "a.txt").write_text(f"{AMINO[0]}\tTRBV99\n")
    hpcvdj_command(*words, code=2)
    hpcvdj_command(*words, "--overwrite", "--v_in", 1, code=2)
    assert (tmp_path / "out.tsv").read_text() == "mine\n"
    hpcvdj_command(*words, "--overwrite")
    assert (tmp_path / "out.tsv").read_text().startswith(AMINO[0])


@pytest.mark.olga
def test_what_is_too_long_is_not_0():
    said, logged = hpcvdj_command("olga", "compute_pgen", "--humanTRB", f"C{'A' * 70}F", f"TGT{'GCC' * 70}TTC")
    assert [cell for line in said.splitlines() for cell in line.split("\t")[1::2]] == ["nan"] * 3
    assert "sequence 1: junction_aa of 72 amino acids is longer than 64" in logged
