"""Files whose structure was changed: found by `mutate.py --changes structure`, each refused in one line."""

import json
import re
import shutil

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hpcvdj.errors import InputError, MachineError
from hpcvdj.motifs.results import MotifResult
from hpcvdj.repertoires.readers import open_table
from hpcvdj.results.export import export
from hpcvdj.results.reader import Result
from hpcvdj.results.result_output import ResultOutput
from hpcvdj.runs.folder import RunFolder, differences, raise_if_complete
from hpcvdj.storage.hdf5 import atomic_hdf5, write_attributes
from tests.commands import hpcvdj_command
from tests.conftest import GERMLINE, SMALL


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a result `r.h5` that has excluded rows, one of tables together, `w.h5`, and a comparison `m.h5`."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "tables").mkdir()
    lines = SMALL.read_text().splitlines(keepends=True)[:13]
    lines[3] = lines[3].replace("TRB", "TRX")
    for name in ("t.tsv", "tables/a.tsv", "tables/b.tsv"):
        (folder / name).write_text("".join(lines))
    for words in (
        ("count", folder / "t.tsv", "-g", GERMLINE, "--max-n", 2, "-o", folder / "r.h5"),
        ("count", folder / "tables", "--together", "-g", GERMLINE, "--max-n", 2, "-o", folder / "w.h5"),
        ("motifs", "compare", SMALL, "-k", 8, "-d", 1, "--top", 2, "-o", folder / "m.h5"),
    ):
        hpcvdj_command(*words)
    return folder


def replaced(file, name, data):
    del file[name]
    file[name] = data


ONCE = "does not name each row of the table once"
RESULTS = {
    "a named type": (lambda f: f["sequences"].__setitem__("type", np.dtype("f8")), "neither a group nor a dataset"),
    "tables of other lengths": (lambda f: replaced(f, "tables/first_row", [0]), "columns of /tables are of different"),
    "no repertoires": (lambda f: f.__delitem__("repertoires"), "/repertoires lacks repertoire_id"),
    "times of another type": (lambda f: replaced(f, "timings/n_first", np.bytes_(["x"])), "/timings/n_first is"),
    "configuration": (lambda f: write_attributes(f, {"config": []}), "its attribute config is not a JSON object"),
    "calls": (lambda f: write_attributes(f, {"substituted_calls": "-1"}), "substituted_calls is not a JSON array"),
    "calls as a number": (lambda f: f.attrs.__setitem__("substituted_calls", np.nan), "is damaged"),
    "an excluded row twice": (lambda f: replaced(f, "excluded/row", [0, 0]), ONCE),
    "counted and excluded": (lambda f: replaced(f, "excluded/row", [0, 1]), ONCE),
    "details": (lambda f: replaced(f, "excluded/details", np.array([b"[]", b"[]"])), "is damaged"),
    "a kind": (lambda f: replaced(f, "excluded/kind", np.array([b"luck", b"luck"])), "is damaged"),
    "text": (lambda f: replaced(f, "excluded/sequence_id", np.array([b"\xff", b"a"])), "is damaged"),
    "a path": (lambda f: replaced(f, "tables/sha256", np.array([b"\xff", b"a"])), "is damaged"),
}  # fmt: skip


@pytest.mark.parametrize("change", RESULTS)
def test_a_result(made, tmp_path, change):
    path = shutil.copy(made / "w.h5", tmp_path)
    with h5py.File(path, "r+") as file:
        RESULTS[change][0](file)
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}.*{re.escape(RESULTS[change][1])}"):
        export(path, tmp_path / "o.tsv")
    assert not (tmp_path / "o.tsv").exists()


def test_an_attribute_that_is_an_array(made, tmp_path):
    """One that hpcvdj writes is of another type then; others are as they are."""
    path = shutil.copy(made / "r.h5", tmp_path)
    with h5py.File(path, "r+") as file:
        file.attrs["of_a_later_version"] = np.arange(3)
    assert export(path, tmp_path / "o.tsv") == 12
    with h5py.File(path, "r+") as file:
        file.attrs["command_line"] = np.arange(3)
    with pytest.raises(InputError, match=r"r\.h5: is damaged: its attribute command_line is not text"):
        export(path, tmp_path / "o.tsv", overwrite=True)


def test_text_that_is_not_utf_8(made, tmp_path):
    path = shutil.copy(made / "r.h5", tmp_path)
    with h5py.File(path, "r+") as file:
        replaced(file, "sequences/sequence_id", np.array([b"\xff"] * len(file["counters"])))
    with Result(path) as result, pytest.raises(InputError, match=r"r\.h5: is damaged: 'utf-8' codec"):
        result.all().texts("sequence_id")


def test_a_part_with_a_wrong_checksum(made, tmp_path, monkeypatch):
    """In a run that was killed before its parts were joined."""

    def full(*arguments, **options):
        raise MachineError("the disk is full")

    words = ("count", made / "t.tsv", "-g", GERMLINE, "--max-n", 2, "-o", tmp_path / "p.h5", "--batch-rows", 5)
    with monkeypatch.context() as patch:
        patch.setattr(ResultOutput, "join", full)
        hpcvdj_command(*words, code=MachineError.exit_code)
    part = tmp_path / "p.h5.parts" / "part-000001.h5"
    with h5py.File(part) as file:
        offset = file["sequences/cdr3"].id.get_chunk_info(0).byte_offset
    data = bytearray(part.read_bytes())
    data[offset + 5] ^= 1
    part.write_bytes(data)
    _, err = hpcvdj_command(*words, "--resume", code=2)
    assert "part-000001.h5: is damaged: its SHA-256 differs; --overwrite starts again" in err
    assert not (tmp_path / "p.h5").exists()


@pytest.mark.parametrize("name", ["r.h5", "w.h5", "m.h5"])
def test_all_has_checksums(made, name):
    """Values by HDF5's filters; what describes them since HDF5 1.10, except trees and heaps of the older format."""
    assert not [sign for sign in (b"TREE", b"SNOD", b"HEAP", b"GCOL") if sign in (made / name).read_bytes()]
    plain = []
    with h5py.File(made / name) as file:
        file.visititems(lambda name, item: plain.append(name) if not getattr(item, "fletcher32", True) else None)
        assert not [name for name in plain if file[name].size]


COMPARISONS = {
    "wide rows": (lambda f: replaced(f, "edges/row", f["edges/row"][:] + np.int64(2**32)), "/edges/row is of type"),
    "a sequence with itself": (lambda f: f["edges/column"].__setitem__(0, f["edges/row"][0]), "that there are not"),
    "terms": (lambda f: replaced(f, "sequences/terms_0/kmers", np.arange(3)), "/sequences/terms_0/kmers is of type"),
    "weights": (lambda f: write_attributes(f, {"weights": {}}), "its weights are not a JSON array"),
    "a name": (lambda f: f["sequences/name"].__setitem__(0, b"\xff"), "is damaged: 'utf-8'"),
}  # fmt: skip


@pytest.mark.parametrize("change", COMPARISONS)
def test_a_comparison(made, tmp_path, change):
    path = shutil.copy(made / "m.h5", tmp_path)
    with h5py.File(path, "r+") as file:
        COMPARISONS[change][0](file)
    _, err = hpcvdj_command("motifs", "cluster", path, "-o", tmp_path / "c.tsv", code=2)
    assert COMPARISONS[change][1] in err


def test_what_is_not_known_is_not_read(made, tmp_path):
    path = shutil.copy(made / "m.h5", tmp_path)
    with h5py.File(path, "r+") as file:
        file["edges/more"] = np.arange(3)
        file["sequences/terms_0/more"] = np.arange(3)
    with MotifResult(path) as changed, MotifResult(made / "m.h5") as whole:
        assert all(map(np.array_equal, changed.edges(), whole.edges()))


def test_scores_that_cannot_be_added(made, tmp_path):
    path = shutil.copy(made / "m.h5", tmp_path)
    with h5py.File(path, "r+") as file:
        file["edges/score"][0] = 1e300
    _, err = hpcvdj_command("motifs", "cluster", path, "-o", tmp_path / "c.tsv", code=2)
    assert "scores of 1e+100 and more cannot be added up" in err


DEEP = '{"x":' * 100_000 + "1" + "}" * 100_000


@pytest.mark.parametrize("facts", ['{"rows": 0}', '{"rows": -5}', DEEP, '{"rows": 1e999}'])
def test_a_record(tmp_path, facts):
    folder = RunFolder(tmp_path / "o.h5.parts", {})
    folder.open({"rows": 5}, resume=False, overwrite=False)
    (folder.path / "part.h5").touch()
    (folder.path / "run.json").write_text(f'{{"format": "hpcvdj-run", "identity": {{}}, "facts": {facts}}}')
    with pytest.raises(InputError, match=r"o\.h5\.parts: "):
        folder.open({"rows": 5}, resume=True, overwrite=False)


@pytest.mark.parametrize("identity", ["[1]", "7", DEEP])
def test_an_identity(tmp_path, identity):
    with atomic_hdf5(tmp_path / "o.h5", overwrite=False) as writer:
        write_attributes(writer.file, {"identity": identity})
    with pytest.raises(InputError, match="is not the result of a run that can be resumed"):
        raise_if_complete(tmp_path / "o.h5", RunFolder(tmp_path / "o.h5.checkpoint", {}))


@pytest.mark.parametrize(
    ("was", "words"), [([[[1]]], "[[1]]"), ([[]], "[]"), ([[{}]], "[{}]"), ([[1, 2]], "[1, 2]"), ("a", "a")]
)  # fmt: skip
def test_the_difference_of_any_json(was, words):
    assert differences({"tables": was}, {"tables": [["t.tsv", "ab"]]}) == f"tables was {words}, is t.tsv"


def test_a_message_is_one_line(made, tmp_path):
    path = shutil.copytree(made, tmp_path / "x") / "r.h5"
    with h5py.File(path, "r+") as file:
        identity = json.loads(file.attrs["identity"])
        write_attributes(file, {"identity": {**identity, "method": "a\nb"}})
    words = ("count", path.with_name("t.tsv"), "-g", GERMLINE, "--max-n", 2, "-o", path, "--resume")
    lines = [line for line in hpcvdj_command(*words, code=2)[1].splitlines() if line.startswith("hpcvdj: error: ")]
    assert len(lines) == 1
    assert lines[0].endswith("--overwrite")


def test_a_parquet_column_whose_name_is_not_text(tmp_path):
    pq.write_table(pa.table({"sequence_id": ["a"], "junctiom": ["TGT"]}), tmp_path / "t.parquet")
    data = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(data.replace(b"junctiom", b"junctio\xd9"))
    with pytest.raises(InputError, match=r"t\.parquet: not a readable Parquet file"):
        assert open_table(tmp_path / "t.parquet").known_rows


@pytest.mark.exhaustive
def test_every_bit_of_a_parquet_footer(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"sequence_id": ["a"], "productive": [True], "rev_comp": [1]}), path)
    data = path.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little")
    refused = 0
    for bit in range(8 * (len(data) - 8 - footer), 8 * (len(data) - 8)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            assert open_table(path).known_rows is not None
            assert open_table(path).columns
        except InputError:
            refused += 1
    assert refused > footer
