"""The commands as a user types them: output, one-line errors, exit codes."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import hpcvdj
from hpcvdj.kernels.pathways.enumerating_cpu import BitwiseKernel
from hpcvdj.results.reader import Result
from tests.commands import error_line, hpcvdj_command, new_process
from tests.conftest import GERMLINE, ROOT, SMALL

COMMANDS = (
    "count", "explain", "verify", "simulate", "export", "report", "info", "study",
    "germline", "motifs", "pgen", "models", "generate", "infer", "convert", "formats", "enrich", "sharing",
    "contamination", "annotate", "associate", "analyze", "olga",
)  # fmt: skip


def test_help_has_each_command_in_a_panel():
    out, _ = hpcvdj_command("--help")
    assert "\nCommands\n" not in out
    panels = re.split(r"^(\w.*)\n(?=  \S)", out, flags=re.MULTILINE)[1:]
    found = {name: panel for name, panel in zip(panels[::2], panels[1::2], strict=True) if name != "Options"}
    named = [word for panel in found.values() for word in re.findall(r"^  ([a-z]+) ", panel, re.MULTILINE)]
    assert sorted(named) == sorted(COMMANDS)
    assert "count" in found["Count pathways"]
    out, _ = hpcvdj_command("study", "--help")
    assert "\nCommands\n" not in out


def test_help_needs_no_heavy_import():
    code = "import sys; sys.argv = ['hpcvdj', '--help']\nfrom hpcvdj.__main__ import main\n"
    code += "try: main()\nexcept SystemExit: pass\n"
    code += "print([name for name in ('numba', 'pyarrow', 'h5py', 'mpi4py.MPI', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] in ("[]", "['numpy']")


BROKEN = """
import sys
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            raise ImportError("a page of advice") from ImportError("libx.so: cannot open shared object file")
sys.meta_path.insert(0, Refusing())
from hpcvdj.__main__ import main
main()
"""


def test_a_library_that_cannot_be_loaded_is_one_line():
    done = subprocess.run([sys.executable, "-c", BROKEN, "info"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    remedy = "install hpcvdj again in this environment"
    assert done.stderr == f"hpcvdj: error: cannot start (libx.so: cannot open shared object file); {remedy}\n"


UNUSED = "pandas", "scipy.linalg", "awkward"
COUNTED = f"""
import json, sys
from hpcvdj.__main__ import main
sys.argv = ["hpcvdj", "-q", "count", {str(SMALL)!r}, "-g", {str(GERMLINE)!r}, "-o", sys.argv[1]]
try: main()
except SystemExit: pass
import pyarrow
print([name for name in {UNUSED} if name in sys.modules])
# What hpcvdj leaves out is there for whoever asks for it.
import pandas, scipy.linalg, numba
print(numba.njit(lambda a: a + 2.0)(1.0), pyarrow.table({{"a": [1]}}).to_pandas().a[0])
"""


@pytest.mark.slow
def test_a_command_loads_what_it_uses(tmp_path):
    """Of compiled functions in the cache, where the first command leaves them."""
    hpcvdj_command("count", SMALL, "-g", GERMLINE, "-o", tmp_path / "first.h5")
    words = [sys.executable, "-c", COUNTED, str(tmp_path / "second.h5")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["[]", "3.0 1"]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(name):
    out, _ = hpcvdj_command(name, "--help")
    assert "Usage" in out
    assert len(out.splitlines()) > 6


def test_version():
    assert new_process("--version")[0] == f"hpcvdj {hpcvdj.__version__}\n"


def test_count_and_export(tmp_path):
    out, _ = hpcvdj_command("count", SMALL, "-g", GERMLINE, "-o", tmp_path / "o.h5")
    assert "500 read = 500 counted + 0 excluded" in out
    assert "500 junctions (100.00 %) have at least one pathway" in out
    out, _ = hpcvdj_command("export", tmp_path / "o.h5", "-o", tmp_path / "o.tsv.gz")
    assert re.search(r"rows +500", out)
    with Result(tmp_path / "o.h5") as result:
        assert result.provenance["command_line"].endswith("o.h5")


def test_a_table_is_written_directly(tmp_path):
    hpcvdj_command("count", SMALL, "-g", GERMLINE, "-o", tmp_path / "o.h5")
    hpcvdj_command("export", tmp_path / "o.h5", "-o", tmp_path / "exported.tsv")
    hpcvdj_command("count", SMALL, "-g", GERMLINE, "-o", tmp_path / "o.tsv")
    assert (tmp_path / "o.tsv").read_bytes() == (tmp_path / "exported.tsv").read_bytes()
    _, err = hpcvdj_command("count", SMALL, "-g", GERMLINE, "-o", tmp_path / "o.tsv", code=2)
    assert "o.tsv: exists" in err or "--overwrite" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exported.tsv", "o.h5", "o.tsv", "o.tsv.json"]


@pytest.mark.slow
def test_methods_agree(tmp_path):
    tables = []
    for method in ("direct", "bitwise", "baseline"):
        path = tmp_path / f"{method}.h5"
        hpcvdj_command("-q", "count", SMALL, "-g", GERMLINE, "-o", path, "--method", method, "--max-n", "1")
        with Result(path) as result:
            tables.append(result.counters[:].tolist())
    assert tables[0] == tables[1] == tables[2]


def test_exclusions_are_summed_up(tmp_path):
    table = tmp_path / "t.tsv"
    table.write_text(SMALL.read_text().replace("TRBV31*01", "TRBV31*05"))
    out, err = hpcvdj_command("count", table, "-g", GERMLINE, "-o", tmp_path / "o.h5")
    count = SMALL.read_text().count("TRBV31*01")
    assert f"{500 - count} counted + {count} excluded" in out
    assert re.search(rf"{count}  V allele TRBV31\*05 is not in the germline table", err)
    assert "--unlisted-alleles first keeps them" in err
    assert "--ambiguous-calls" not in err
    line = error_line(hpcvdj_command("count", table, "-g", GERMLINE, "-o", tmp_path / "p.h5", "--strict", code=2)[1])
    assert "TRBV31*05" in line
    assert not (tmp_path / "p.h5").exists()
    out, err = hpcvdj_command("count", table, "-g", GERMLINE, "-o", tmp_path / "q.h5", "--unlisted-alleles", "first")
    assert "500 counted + 0 excluded" in out
    assert f"TRBV31*05 is counted as TRBV31*01 in {count} rows" in err


def test_a_table_without_a_row_to_count_is_said(tmp_path):
    (tmp_path / "t.tsv").write_text("sequence_id\tv_call\tj_call\tjunction\na\tTRBV1\tTRBJ1-1\tCASSLGQF\n")
    out, err = hpcvdj_command("-q", "count", tmp_path / "t.tsv", "-g", GERMLINE, "-o", tmp_path / "o.tsv", code=2)
    assert re.search(r"t.tsv: no row could be counted; .*o.tsv has the reason of each", error_line(err))
    assert "t.tsv: 1 of 1 rows excluded" in err
    assert out == ""
    assert "these seem to be amino acids" in (tmp_path / "o.tsv").read_text()
    (tmp_path / "c.tsv").write_text("sequence_id\tv_call\tj_call\tcdr3\na\tTRBV1\tTRBJ1-1\tGCC\n")
    _, err = hpcvdj_command("count", tmp_path / "c.tsv", "-g", GERMLINE, "-o", tmp_path / "p.h5", code=2)
    # Other commands do not have this option.
    remedy = "c.tsv, line 1: no column junction; hpcvdj count reads the column cdr3 with --sequence-field cdr3"
    assert remedy in error_line(err)
    _, err = hpcvdj_command("pgen", tmp_path / "c.tsv", "-m", "human_trb_m15", "-o", tmp_path / "p.tsv", code=2)
    assert remedy in error_line(err)


def test_forms_is_table_3():
    out, _ = hpcvdj_command("study", "forms", GERMLINE, "--in-vivo", "101837")
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.startswith("  ") and line.split()}
    assert rows["V"][2:5] == ["362", "3,107", "913"]
    assert rows["J"][2:5] == ["283", "3,210", "908"]
    assert rows["D"][2] == "505"
    for text in ("51,735,230", "102,446", "6,517,568", "1,629,392", "one\n  line off", "1,448 and 425"):
        assert text in out


@pytest.mark.slow
def test_verify(tmp_path):
    out, _ = hpcvdj_command("verify", SMALL, "-g", GERMLINE, "--sample", "6", "--max-n", "2")
    assert out.count(" 0 differences") == 4


@pytest.mark.slow
def test_verify_needs_rows(tmp_path):
    """It would find no difference in a table of which it counts nothing."""
    lines = SMALL.read_text().splitlines()
    other = tmp_path / "other.tsv"
    other.write_text("\n".join([lines[0], *(line.replace("TRBV", "TRAV") for line in lines[1:9])]) + "\n")
    _, err = hpcvdj_command("verify", other, "-g", GERMLINE, code=2)
    assert f"{other}: no row could be used: 8 of 8 rows excluded: " in error_line(err)
    other.write_text("\n".join([*lines[:5], lines[5].replace("TRBV", "TRAV")]) + "\n")
    out, err = hpcvdj_command("verify", other, "-g", GERMLINE, "--max-n", "1")
    assert out.startswith("4 junctions")
    assert "other.tsv: 1 of 5 rows excluded:" in err


def test_verify_sees_a_wrong_kernel(monkeypatch):
    """Verification that cannot fail would verify nothing."""
    right = BitwiseKernel.start

    def wrong(self, unit, first, last):
        counters = right(self, unit, first, last)()
        return lambda: counters + (unit.n_lengths.start == 1)

    monkeypatch.setattr(BitwiseKernel, "start", wrong)
    out, _ = hpcvdj_command("verify", SMALL, "-g", GERMLINE, "--sample", "3", "--max-n", "1", code=1)
    assert re.search(r"bitwise .* 3 differences\n    first: .*m=1: reference \d+, bitwise \d+", out)


def test_simulate_then_count(tmp_path):
    path = tmp_path / "s.parquet"
    out, _ = hpcvdj_command("simulate", "-g", GERMLINE, "-n", "200", "--seed", "7", "-o", path)
    assert "junctions  200 over" in out
    out, _ = hpcvdj_command("count", path, "-g", GERMLINE, "-o", tmp_path / "o.h5", "--max-n", "all")
    assert "200 counted" in out


def test_info():
    out, _ = hpcvdj_command("info")
    assert hpcvdj.__version__ in out
    assert "rank 0" in out


BAD = {
    "missing file": (["count", "none.tsv", "-g", GERMLINE, "-o", "o.h5"], "none.tsv: no such file"),
    "missing germline": (["count", SMALL, "-g", "none.tsv", "-o", "o.h5"], "none.tsv: no such germline table"),
    "no folder": (["count", SMALL, "-g", GERMLINE, "-o", "none/o.h5"], "none: no such folder"),
    "max n": (["count", SMALL, "-g", GERMLINE, "-o", "o.h5", "--max-n", "many"], "--max-n many"),
    "too long n": (
        ["count", SMALL, "-g", GERMLINE, "-o", "o.h5", "--max-n", "99", "--method", "bitwise"],
        "use --method direct",
    ),
    "wrong table": (["count", GERMLINE, "-g", GERMLINE, "-o", "o.h5"], "no column v_call, j_call, junction; --columns"),
    "simulate name": (["simulate", "-g", GERMLINE, "-o", "o.csv"], "must end in .tsv"),
    "simulate range": (["simulate", "-g", GERMLINE, "-o", "o.tsv", "--n-lengths", "a-b"], "--n-lengths a-b"),
    "export result": (["export", GERMLINE, "-o", "o.tsv"], "not a result file, or a damaged one"),
    "forms": (["study", "forms", SMALL], "line 1: no column"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_line_and_exit_2(tmp_path, arguments, message):
    out, err = hpcvdj_command(*arguments, code=2, cwd=tmp_path)
    assert message in error_line(err)
    assert out == ""
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "words",
    [
        ("count", "in.tsv", "-g", "g.tsv", "-o", "in.tsv"),
        ("count", "in.tsv", "-g", "g.tsv", "-o", "g.tsv"),
        ("count", "in.tsv", "-g", "g.tsv", "-o", "in.tsv", "--batch-rows", "100"),
        ("count", "in.tsv", "-g", "g.tsv", "-o", "in.tsv", "--together"),
        ("simulate", "-n", "5", "-g", "g.tsv", "-o", "g.tsv"),
        ("motifs", "compare", "in.tsv", "-o", "in.tsv"),
    ],
)
def test_an_input_is_never_the_output(tmp_path, words):
    for source, name in ((SMALL, "in.tsv"), (GERMLINE, "g.tsv")):
        shutil.copy(source, tmp_path / name)
    _, err = hpcvdj_command(*words, "--overwrite", code=2, cwd=tmp_path)
    assert "is an input of this run" in error_line(err)
    assert (tmp_path / "in.tsv").read_bytes() == SMALL.read_bytes()
    assert (tmp_path / "g.tsv").read_bytes() == GERMLINE.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["g.tsv", "in.tsv"]


@pytest.mark.parametrize("command", [("count", "pipe", "-g", GERMLINE), ("motifs", "compare", "pipe")])
def test_a_pipe_is_refused_for_what_it_is(tmp_path, command):
    os.mkfifo(tmp_path / "pipe")
    _, err = hpcvdj_command(*command, "-o", "o.h5", code=2, cwd=tmp_path)
    assert "not a regular file" in error_line(err)


@pytest.mark.parametrize("arguments", [["count"], ["nothing"], ["count", SMALL, "--method", "guess"]])
def test_usage_errors_exit_2(arguments):
    assert "Usage" in hpcvdj_command(*arguments, code=2)[1]


def test_cuda_without_a_gpu_names_the_remedy(tmp_path):
    from hpcvdj.kernels.backends import gpu_count

    if gpu_count():
        pytest.skip("there is a GPU")
    _, err = hpcvdj_command("count", SMALL, "-g", GERMLINE, "-o", tmp_path / "o.h5", "--backend", "cuda", code=1)
    assert re.search(r"pip install 'hpcvdj\[cuda13\]'|nvidia-smi", error_line(err))
    assert os.listdir(tmp_path) == []


def test_scaling_measures_and_renders(tmp_path):
    arguments = ("study", "scaling", SMALL, "-g", GERMLINE, "-o", tmp_path, "--n-lengths", "0", "--repeats", "1")
    hpcvdj_command(*arguments, "--backend", "cpu", "--sample", "10")
    assert (tmp_path / "raw-bitwise-1.csv").exists()
    pytest.importorskip("matplotlib")
    hpcvdj_command("study", "render", tmp_path)
    assert "Strong scaling" in (tmp_path / "README.md").read_text()


def test_an_existing_output_is_kept(tmp_path):
    (tmp_path / "o.h5").write_text("precious")
    _, err = hpcvdj_command("count", SMALL, "-g", GERMLINE, "-o", tmp_path / "o.h5", code=2)
    assert "--overwrite" in error_line(err)
    assert (tmp_path / "o.h5").read_text() == "precious"


def test_outputs_of_tables_that_are_gone_are_named(tmp_path):
    """They are kept, as they may be of tables elsewhere, but a report of the folder would show them."""
    (tmp_path / "in").mkdir()
    for name in ("a.tsv", "b.tsv"):
        shutil.copy(SMALL, tmp_path / "in" / name)
    words = ("count", tmp_path / "in", "-g", GERMLINE, "-o", tmp_path / "out", "--overwrite")
    assert "of another run" not in hpcvdj_command(*words)[1]
    assert "of another run" not in hpcvdj_command(*words)[1]
    (tmp_path / "in" / "b.tsv").rename(tmp_path / "in" / "c.tsv")
    assert f"{tmp_path / 'out'}: b.h5: of another run" in hpcvdj_command(*words)[1]
    assert sorted(os.listdir(tmp_path / "out")) == ["a.h5", "b.h5", "c.h5"]


def test_no_v_in_the_germline(tmp_path):
    lines = [line for line in GERMLINE.read_text().splitlines() if "\tV\t" not in line]
    (tmp_path / "g.tsv").write_text("\n".join(lines) + "\n")
    _, err = hpcvdj_command("count", SMALL, "-g", tmp_path / "g.tsv", "-o", tmp_path / "o.h5", code=2)
    assert "locus TRB has no V segment" in error_line(err)


@pytest.mark.slow
def test_a_write_that_fails_leaves_nothing(tmp_path):
    """A limit on file size is a disk that fills up in the midst of writing, for any user."""
    # The MPI library writes files of its own at start, so it stays out of this.
    code = (
        "import sys, resource; sys.modules['mpi4py'] = None\n"
        # Python would leave compiled modules that are cut short, and later runs would read them.
        "sys.dont_write_bytecode = True\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "from hpcvdj.__main__ import main\n"
        f"sys.argv = ['hpcvdj', 'count', {str(SMALL)!r}, '-g', {str(GERMLINE)!r}, '-o', {str(tmp_path / 'o.h5')!r}]\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "o.h5: writing failed" in error_line(done.stderr)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    "words",
    [
        ["formats"],
        ["germline", "list"],
        ["models", "list"],
        ["models", "show", "human_trb_m15"],
        pytest.param(["models", "compare", "human_trb_m15", "human_trb_m15"], marks=pytest.mark.slow),
        pytest.param(["info"], marks=pytest.mark.slow),
        pytest.param(
            ["verify", SMALL, "-g", GERMLINE, "--sample", "2", "--max-n", "1"], marks=pytest.mark.slow, id="verify"
        ),
    ],
    ids=" ".join,
)
def test_a_listing_to_a_full_disk_is_one_line(words):
    """It was an unexpected error, to be reported, or no error at all."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hpcvdj", *words], check=False, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert error_line(done.stderr).endswith("standard output: the disk is full; free space, or write elsewhere")


def test_a_full_disk(tmp_path, monkeypatch):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if not mount or subprocess.run([mount, "-t", "tmpfs", "-o", "size=20k", "tmpfs", disk], check=False).returncode:
        pytest.skip("mounting a small disk takes root")
    try:
        for name in ("o.h5", "o.tsv", "o.tsv.gz", "o.parquet", "o.dataset"):
            _, err = hpcvdj_command("count", SMALL, "-g", GERMLINE, "-o", disk / name, code=1)
            assert "the disk is full" in error_line(err)
        _, err = hpcvdj_command("simulate", "-g", GERMLINE, "-n", "5000", "-o", disk / "o.tsv", code=1)
        assert "the disk is full" in error_line(err)
        assert os.listdir(disk) == []
        monkeypatch.setattr(tempfile, "tempdir", str(disk))
        for table, target, whose in (
            (SMALL, "-", "standard output, which is kept in"),
            ("-", tmp_path / "o.tsv", "a copy of standard input in"),
        ):
            _, err = hpcvdj_command("count", table, "-g", GERMLINE, "-o", target, stdin=SMALL.read_bytes() * 20, code=1)
            assert f"{whose} {disk} (TMPDIR)" in error_line(err)
            assert "the disk is full" in error_line(err)
            assert os.listdir(disk) == []
    finally:
        subprocess.run(["umount", disk], check=True)


def test_real_repertoires(tmp_path, shared_data):
    for name, table, rows in (
        ("mouse_TRB_dash2017", "mouse_trb", 1924),
        ("human_TRB_minervina_M15_CD8", "human_trb", 67238),
    ):
        germline = ROOT / "inputs" / "germline" / f"{table}.tsv"
        path = shared_data / f"{name}.tsv.gz"
        hpcvdj_command("-q", "count", path, "-g", germline, "-o", tmp_path / f"{name}.h5")
        with Result(tmp_path / f"{name}.h5") as result:
            assert len(result) + len(result.excluded) == rows


def test_many_repertoires_in_one_run(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    header, *rows = SMALL.read_text().splitlines(keepends=True)
    for name, part in (("a", rows[:40]), ("c", rows[40:90])):
        (folder / f"{name}.tsv").write_text(header + "".join(part))
    (folder / "b.tsv").write_text("no\ttable\n1\t2\n")
    out = tmp_path / "out"
    _, err = hpcvdj_command("count", folder, "-g", GERMLINE, "-o", out, "--max-n", 3, code=2)
    assert "b.tsv" in err
    assert "1 of 3 repertoires were not counted: b.tsv" in err
    assert sorted(path.name for path in out.iterdir()) == ["a.h5", "c.h5"]
    hpcvdj_command("count", folder / "a.tsv", "-g", GERMLINE, "-o", tmp_path / "alone.h5", "--max-n", 3)
    with Result(out / "a.h5") as one, Result(tmp_path / "alone.h5") as alone:
        assert (one.counters[:] == alone.counters[:]).all()
        assert one.provenance["repertoire_id"] == "a"
    (folder / "b.tsv").write_text(header + "".join(rows[90:95]))
    stdout, err = hpcvdj_command("count", folder, "-g", GERMLINE, "-o", out, "--max-n", 3, "--resume")
    assert err.count("is complete already") == 2
    assert stdout.count("5 read = 5 counted + 0 excluded") == 2
    assert (out / "b.h5").exists()


def test_results_may_go_to_the_folder_of_the_tables(tmp_path):
    shutil.copy(SMALL, tmp_path / "a.tsv")
    hpcvdj_command("count", tmp_path, "-g", GERMLINE, "-o", tmp_path, "--max-n", 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.h5", "a.tsv"]


@pytest.mark.slow
def test_the_studies_on_cpu_cores(tmp_path):
    """Measured, written, rendered: methods, blocks, pairs, throughput, scaling; memory needs a GPU."""
    pytest.importorskip("matplotlib")
    few = ("--sample", 8, "--n-lengths", "0-1", "--repeats", 1, "--backend", "cpu")
    hpcvdj_command("study", "methods", SMALL, "-g", GERMLINE, "-o", tmp_path / "methods", *few)
    hpcvdj_command("study", "blocks", SMALL, "-g", GERMLINE, "-o", tmp_path / "blocks", "--sizes", "32,64", *few)
    hpcvdj_command("study", "pairs", SMALL, "-g", GERMLINE, "-o", tmp_path / "pairs")
    hpcvdj_command("study", "throughput", "-g", GERMLINE, "-n", 2000, "-o", tmp_path / "throughput", "--backend", "cpu")
    hpcvdj_command("study", "scaling", SMALL, "-g", GERMLINE, "-o", tmp_path / "scaling", *few)
    for folder in ("methods", "blocks", "pairs", "throughput", "scaling"):
        hpcvdj_command("study", "render", tmp_path / folder)
        text = (tmp_path / folder / "README.md").read_text()
        assert "DIFFER" not in text
        assert len(list((tmp_path / folder).glob("*.png"))) == 1
    tables = ("-n", 8, "--length", 60, "-k", "8", "--settings-k", 8, "--buckets", "1,8", "--repeats", 1)
    hpcvdj_command("study", "motif-tables", "-o", tmp_path / "tables", "--backend", "cpu", *tables)
    hpcvdj_command("study", "render", tmp_path / "tables")
    assert "counters identical for all" in (tmp_path / "tables" / "README.md").read_text()
    _, err = hpcvdj_command("study", "render", tmp_path, code=2)
    assert "not the folder of a study, which has raw*.csv (it has blocks" in error_line(err)
    (tmp_path / "raw-1.csv").write_text("# study: cooking\na\n1\n")
    _, err = hpcvdj_command("study", "render", tmp_path, code=2)
    assert "its raw files are of cooking" in error_line(err)
    wrong = hpcvdj_command("study", "blocks", SMALL, "-g", GERMLINE, "-o", tmp_path, "--sizes", "0", code=2)
    assert "--sizes 0" in error_line(wrong[1])
