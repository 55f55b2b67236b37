"""What all commands have in common: standard input and output, -q and -v, folders of tables, help, completion."""

import os
import re
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from hpcvdj.results.reader import Result
from hpcvdj.runs import progress
from tests.commands import error_line, hpcvdj_command
from tests.conftest import GERMLINE, ROOT, SMALL

COUNT = ("count", "-g", GERMLINE, "--max-n", 2)
HEADER, *ROWS = SMALL.read_text().splitlines(keepends=True)
UNKNOWN = "x\tTRBV99\tTRBJ9-9\tTGTGCC\n"


def _tables(folder, number):
    """A folder of tables of 5 rows, and one row of an unknown gene each."""
    folder.mkdir()
    columns = HEADER.rstrip("\n").split("\t")
    unknown = dict(zip(("sequence_id", "v_call", "j_call", "junction"), UNKNOWN.rstrip().split("\t"), strict=True))
    line = "\t".join(unknown.get(column, "") for column in columns) + "\n"
    for k in range(number):
        (folder / f"t{k:02}.tsv").write_text(HEADER + "".join(ROWS[5 * k : 5 * k + 5]) + line)
    return folder


def test_a_folder_is_one_line_each_and_a_total(tmp_path):
    folder = _tables(tmp_path / "in", 8)
    out, err = hpcvdj_command(*COUNT, folder, "-o", tmp_path / "out")
    lines = out.splitlines()
    assert len([line for line in lines if re.match(r"t0\d.tsv: 6 read = 5 counted \+ 1 excluded", line)]) == 8
    assert len(lines) <= 8 + 10
    assert "rows       48 read = 40 counted + 8 excluded" in out
    assert len([line for line in err.splitlines() if "excluded" in line]) == 1
    assert "8 tables: 8 of 48 rows excluded" in err
    assert re.search(r"8  V gene TRBV99 is not", err)


def test_a_folder_as_total_is_the_sum_of_its_tables(tmp_path):
    folder = _tables(tmp_path / "in", 3)
    out, _ = hpcvdj_command("count", "-g", GERMLINE, "--max-n", "all", folder, "-o", tmp_path / "out")
    pathways = 0
    for path in (tmp_path / "out").iterdir():
        with Result(path) as result:
            pathways += int(result.counters[:].sum())
    assert f"pathways   {pathways:,} in all" in out
    assert "reached    15 junctions (100.00 %)" in out


def test_one_table_of_many_without_a_row_to_count_is_a_failure(tmp_path):
    folder = _tables(tmp_path / "in", 2)
    columns = HEADER.rstrip("\n").split("\t")
    (folder / "bad.tsv").write_text(HEADER + "\t".join("TGT" if c == "junction" else "a" for c in columns) + "\n")
    _, err = hpcvdj_command(*COUNT, folder, "-o", tmp_path / "out", code=2)
    assert "1 of 3 repertoires were not counted: bad.tsv" in error_line(err)
    assert "bad.tsv: no row could be counted" in err


def test_warnings_name_the_table(tmp_path):
    table = tmp_path / "t.tsv"
    table.write_text(SMALL.read_text().replace("TRBV31*01", "TRBV31*05"))
    _, err = hpcvdj_command(*COUNT, table, "-o", tmp_path / "o.h5", "--unlisted-alleles", "first")
    assert "t.tsv: call TRBV31*05 is counted as TRBV31*01" in err


def test_several_tables_do_not_go_to_one_table(tmp_path):
    folder = _tables(tmp_path / "in", 2)
    _, err = hpcvdj_command(*COUNT, folder, "-o", tmp_path / "o.tsv", code=2)
    assert "go to a folder" in error_line(err)
    assert not (tmp_path / "o.tsv").exists()


@pytest.mark.parametrize(
    "words",
    [
        (*COUNT, SMALL),
        ("simulate", "-g", GERMLINE, "-n", 40, "--seed", 3),
        ("export", "c.h5"),
    ],
    ids=lambda words: words[0],
)
def test_a_table_on_standard_output(tmp_path, words):
    hpcvdj_command(*COUNT, SMALL, "-o", tmp_path / "c.h5")
    hpcvdj_command(*words, "-o", "o.tsv", cwd=tmp_path)
    out, err = hpcvdj_command(*words, "-o", "-", cwd=tmp_path)
    assert out == (tmp_path / "o.tsv").read_text()
    assert re.search(r"(result|written) +standard output", err)
    facts = ["o.tsv.json"] if words[0] == "count" else []
    assert sorted(os.listdir(tmp_path)) == ["c.h5", "o.tsv", *facts]
    out, err = hpcvdj_command("-q", *words, "-o", "-", cwd=tmp_path)
    assert out == (tmp_path / "o.tsv").read_text()
    assert err == ""


@pytest.mark.slow
def test_a_table_from_standard_input(tmp_path):
    hpcvdj_command(*COUNT, SMALL, "-o", tmp_path / "o.tsv")
    for data in (SMALL.read_bytes(), _as_parquet(tmp_path)):
        out, _ = hpcvdj_command(*COUNT, "-", "-o", "-", stdin=data)
        assert out == (tmp_path / "o.tsv").read_text()
    hpcvdj_command("motifs", "compare", "-", "-k", 8, "-d", 0, "-o", tmp_path / "m.h5", stdin=b">a\nACGTACGTAC\n")
    hpcvdj_command(*COUNT, SMALL, "-o", tmp_path / "c.h5")
    out, _ = hpcvdj_command("export", "-", "-o", "-", stdin=(tmp_path / "c.h5").read_bytes())
    assert out == (tmp_path / "o.tsv").read_text()


def _as_parquet(tmp_path):
    import pyarrow.csv as pacsv

    path = tmp_path / "p.parquet"
    pq.write_table(pacsv.read_csv(SMALL, parse_options=pacsv.ParseOptions(delimiter="\t")), path)
    return path.read_bytes()


def test_messages_name_the_standard_streams(tmp_path):
    _, err = hpcvdj_command(*COUNT, "-", "-o", tmp_path / "o.h5", stdin=b"a\tb\n1\t2\n", code=2)
    assert error_line(err).startswith("hpcvdj: error: standard input, line 1: no column")
    table = (HEADER + "".join(ROWS[:3])).replace("TRBV", "TRBX").encode()
    _, err = hpcvdj_command(*COUNT, "-", "-o", tmp_path / "o.h5", stdin=table, code=2)
    assert "standard input: no row could be counted" in error_line(err)
    assert "hpcvdj-" not in err
    out, err = hpcvdj_command(*COUNT, tmp_path, tmp_path, "-o", "-", code=2)
    assert out == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*COUNT, "-", "-", "-o", "o.h5"), "given twice"),
        (("sharing", SMALL, "-m", "human_trb", "-o", "-", "--overlap", "-"), "two outputs"),
        (
            ("contamination", SMALL, "-m", "human_trb", "-o", "clean/pairs.tsv", "--write-clean", "clean"),
            "clean/pairs.tsv: is within the folder clean, which this run writes, too; name another place",
        ),
        (
            ("sharing", SMALL, "-m", "human_trb", "-o", "o.tsv", "--overlap", "o.tsv.json"),
            "o.tsv.json: is the name of the facts of o.tsv; name another file",
        ),
        (("report", "c.h5", "-o", "-"), "only a table"),
        (("motifs", "compare", SMALL, "-o", "-"), "only a table"),
    ],
)
def test_a_dash_that_cannot_be(tmp_path, words, message):
    _, err = hpcvdj_command(*words, code=2, cwd=tmp_path)
    assert message in error_line(err)
    assert os.listdir(tmp_path) == []


def test_ranks_share_no_standard_stream(monkeypatch):
    monkeypatch.setenv("PMI_SIZE", "2")
    assert "ranks cannot share" in error_line(hpcvdj_command(*COUNT, "-", "-o", "o.h5", code=2)[1])


@pytest.mark.slow
def test_a_reader_who_has_seen_enough_is_no_error(tmp_path):
    shown = f"{sys.executable} -m hpcvdj count {SMALL} -g {GERMLINE} -o - | head -2"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["sh", "-c", shown], capture_output=True, text=True, check=True, env=environment)
    assert len(done.stdout.splitlines()) == 2
    assert "error" not in done.stderr


@pytest.mark.parametrize("before", [True, False])
def test_quiet_is_quiet_before_and_after_the_command(tmp_path, before):
    command, *rest = (*COUNT, SMALL, "-o", tmp_path / "o.h5")
    out, err = hpcvdj_command(*(["-q", command] if before else [command, "-q"]), *rest)
    assert (out, err) == ("", "")
    out, _ = hpcvdj_command("motifs", "compare", SMALL, "-k", 8, "-d", 0, "-o", tmp_path / "m.h5", "-q")
    assert out == ""
    # What was asked for is printed.
    out, _ = hpcvdj_command("study", "forms", "-q", GERMLINE)
    assert "segments" in out


def test_quiet_does_not_hide_warnings(tmp_path):
    table = tmp_path / "t.tsv"
    table.write_text(SMALL.read_text().replace("TRBV31*01", "TRBV31*05"))
    out, err = hpcvdj_command(*COUNT, "-q", table, "-o", tmp_path / "o.h5")
    assert out == ""
    assert "rows excluded" in err


@pytest.mark.parametrize("words", [["-v", "study", "forms"], ["study", "forms", "-v"]])
def test_verbose_before_and_after_the_command(monkeypatch, words):
    from hpcvdj.studies import memory

    def broken(*arguments):
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(memory, "forms_tables", broken)
    assert "Traceback" not in hpcvdj_command("study", "forms", GERMLINE, code=1)[1]
    assert "in broken" in hpcvdj_command(*words, GERMLINE, code=1)[1]


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_help_has_two_parts_and_fits(columns):
    out, _ = hpcvdj_command("count", "--help-all", columns=columns)
    needed, more = out.split("\nMore options\n")
    assert "--germline" in needed
    assert "--quiet" in more
    assert "--patience" in more
    assert max(map(len, out.splitlines())) <= columns
    # Nothing is cut, and descriptions get most of the width.
    assert "…" not in out
    assert "junction=cdr3nt,v_call=v" in out
    widest = max(len(line.strip()) for line in more.splitlines() if line.startswith("      "))
    assert widest > 0.6 * min(columns, 110)


def test_each_option_is_in_the_help_once():
    out, _ = hpcvdj_command("pgen", "--help-all")
    options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", out, re.MULTILINE)
    assert sorted(options) == sorted(set(options))
    assert {"--model", "--output", "--mismatches", "--alphabet", "--help", "--verbose"} <= {*options}


@pytest.mark.slow
def test_shell_completion():
    def completed(words):
        environment = {"_HPCVDJ_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        done = subprocess.run(
            [sys.executable, "-c", "import sys; sys.argv = ['hpcvdj']; from hpcvdj.cli import main; main()"],
            capture_output=True, text=True, check=False, env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        return done.stdout.split()

    assert "count" in completed("hpcvdj co")
    assert "--max-n" in completed("hpcvdj count --max")
    assert completed("hpcvdj count --method d") == ["direct"]
    # typer asks the processes above its own for their shell: this one's are none, where nobody works at a terminal.
    shown = f"{sys.executable} -m hpcvdj --show-completion; exit $?"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", shown], capture_output=True, text=True, check=True, env=environment)
    assert "_HPCVDJ_COMPLETE=complete_bash" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("simulate", "-g", GERMLINE, "-n", 200, "-o", "s.tsv"), "drawing: "),
        (("export", "c.h5", "-o", "e.tsv"), "writing the table"),
        (("verify", SMALL, "-g", GERMLINE, "--sample", 2, "--max-n", 0, "--literal-max-n", 0), "Algorithm 1"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_takes_long_says_how_far_it_is(tmp_path, monkeypatch, words, message):
    for name in ("c.h5", "d.h5"):
        hpcvdj_command("-q", *COUNT, SMALL, "-o", tmp_path / name)
    # Batches are smaller than the table, and every moment is long.
    monkeypatch.setattr(progress, "PATIENT_SECONDS", 0.0)
    monkeypatch.setattr("hpcvdj.repertoires.readers.text.BLOCK_BYTES", 10_000)
    _, err = hpcvdj_command(*words, cwd=tmp_path)
    assert message in err
    assert "% done" in err
    _, err = hpcvdj_command(*words, "-q", *([] if words[0] == "verify" else ["--overwrite"]), cwd=tmp_path)
    assert "% done" not in err


def test_a_small_share_says_what_to_do(tmp_path):
    out, _ = hpcvdj_command("count", "-g", GERMLINE, "--max-n", 2, SMALL, "-o", tmp_path / "o.h5")
    reached = int(re.search(r"reached +([\d,]+) junctions", out)[1])
    assert reached < 450
    assert f"{500 - reached:,} junctions need more than 2 n-nucleotides: --max-n all" in out
    assert "hpcvdj pgen" in out
    out, _ = hpcvdj_command("count", "-g", GERMLINE, "--max-n", "all", SMALL, "-o", tmp_path / "p.h5")
    assert "n-nucleotides: --max-n all" not in out


def test_a_result_of_standard_input_cannot_be_exported(tmp_path):
    _, err = hpcvdj_command("count", "-", "-g", GERMLINE, "-o", tmp_path / "s.h5", stdin=SMALL.read_bytes())
    assert "s.h5: hpcvdj export cannot add these values to their table, because standard input is not kept" in err
    _, err = hpcvdj_command("count", "-", "-g", GERMLINE, "-o", tmp_path / "s.tsv", stdin=SMALL.read_bytes())
    assert "hpcvdj export cannot" not in err


def test_quiet_commands_name_kinds_of_reasons_only(tmp_path):
    table = tmp_path / "t.tsv"
    rows = [f"s{k}\tTRBV9{k}\tTRBJ1-1\tTGTGCCTTT\n" for k in range(5)] + ["t\tTRBV1\tTRBJ1-1\tTGTGCCTTT\n"]
    table.write_text("sequence_id\tv_call\tj_call\tjunction\n" + "".join(rows))
    _, err = hpcvdj_command("count", "-q", table, "-g", GERMLINE, "-o", tmp_path / "q.tsv")
    assert "5  V gene that is not in the germline table" in err
    assert "TRBV93" not in err
    _, err = hpcvdj_command("count", table, "-g", GERMLINE, "-o", tmp_path / "o.tsv")
    assert "1  TRBV93" in err


def test_help_has_no_noise():
    out, _ = hpcvdj_command("infer", "--help")
    assert "9223372036854775807" not in out
    assert "JUNCTIONS..." in out
    assert "......" not in out
    assert "{" not in out


def test_the_help_of_groups_looks_like_that_of_commands():
    out, _ = hpcvdj_command("--help")
    assert out.startswith("Usage: hpcvdj [OPTIONS] COMMAND [ARGS]...\n")
    assert re.search(r"^Generation probabilities\n  pgen  +Compute how probable", out, re.MULTILINE)
    assert "First look: hpcvdj count" in out
    assert "--help-all" not in out, "groups do not have it"
    out, _ = hpcvdj_command("models", "--help")
    assert re.search(r"^Commands\n  list  +List the models", out, re.MULTILINE)


def test_explain_takes_nucleotides():
    for source in (("-g", GERMLINE, "--v", "TRBV5", "--j", "TRBJ2-4"), ("-m", "human_trb_m15")):
        _, err = hpcvdj_command("explain", "CASSIDTQQAFVEQYF", *source, code=2)
        assert "these seem to be amino acids; explain takes nucleotides" in err


def test_a_wrong_value_is_named_by_the_flag_that_users_know():
    _, err = hpcvdj_command("explain", "TGTGCC", "-m", "human_trb_m15", "--list", 100_001, code=2)
    assert error_line(err).endswith("--list 100001: give a number from 0 to 100,000")
