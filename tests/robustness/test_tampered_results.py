"""Results, comparisons and records that somebody changed: refused in one line, with nothing of other files shown."""

import h5py
import numpy as np
import pytest

from hpcvdj.storage.hdf5 import write_attributes
from tests.conftest import SMALL
from tests.robustness.processes import all_refused, count, nothing_left, refused

pytestmark = pytest.mark.slow


@pytest.fixture
def tampered(result, tmp_path):
    """A copy of the result, and how to change it."""
    path = tmp_path / "o.h5"
    path.write_bytes(result.read_bytes())
    return path


def all_refuse(path, said):
    """Every command that reads a result refuses this one in one line."""
    folder = path.parent
    for line in all_refused(
        ("export", path, "-o", folder / "t.tsv", "--junctions", SMALL),
        ("report", path, "-o", folder / "r.html"),
    ):
        assert said in line, line
    assert not {"t.tsv", "r.html"} & {other.name for other in folder.iterdir()}


SECRET = "the content of another file"


def replace_dataset(file, name, data=None, **options):
    del file[name]
    file.create_dataset(name, data=data, **options)


@pytest.mark.exhaustive
@pytest.mark.parametrize("where", ["sequences/sequence_id", "counters", "pairs/v_call"])
def test_storage_in_another_file(tampered, where):
    secret = tampered.with_name("secret")
    secret.write_bytes((SECRET * 10000).encode())
    with h5py.File(tampered, "r+") as file:
        old = file[where]
        replace_dataset(file, where, shape=old.shape, dtype=old.dtype, external=[(str(secret), 0, h5py.h5f.UNLIMITED)])
    all_refuse(tampered, "is stored in another file; do not trust this file")


@pytest.mark.parametrize("link", [h5py.ExternalLink("other.h5", "/x"), h5py.SoftLink("/sequences/cdr3")])
def test_a_link(tampered, link):
    with h5py.File(tampered.with_name("other.h5"), "w") as other:
        other["x"] = np.array([SECRET.encode()] * 500)
    with h5py.File(tampered, "r+") as file:
        del file["sequences/sequence_id"]
        file["sequences/sequence_id"] = link
    all_refuse(tampered, "o.h5: /sequences/sequence_id is a link, which no result has")


def test_a_view_of_another_file(tampered):
    with h5py.File(tampered.with_name("other.h5"), "w") as other:
        other["x"] = np.array([SECRET.encode()] * 500)
    layout = h5py.VirtualLayout((500,), "S27")
    layout[:] = h5py.VirtualSource("other.h5", "x", (500,), "S27")
    with h5py.File(tampered, "r+") as file:
        del file["sequences/sequence_id"]
        file.create_virtual_dataset("sequences/sequence_id", layout)
    all_refuse(tampered, "which is not a part; do not trust this file")


CHANGES = {
    "80 TiB declared": lambda f: replace_dataset(
        f, "counters", shape=(10**12, 11), dtype="u8", chunks=(1 << 16, 11), compression="gzip"
    ),
    "negative": lambda f: replace_dataset(f, "counters", data=-f["counters"][:].astype("i8")),
    "float": lambda f: replace_dataset(f, "counters", data=f["counters"][:] * np.nan),
    "one column less": lambda f: replace_dataset(f, "counters", data=f["counters"][:, 0]),
    "no columns": lambda f: replace_dataset(f, "counters", data=f["counters"][:, :0]),
    "one row less": lambda f: replace_dataset(f, "counters", data=f["counters"][:-1]),
    "no counters": lambda f: f.__delitem__("counters"),
    "counters as a group": lambda f: (f.__delitem__("counters"), f.create_group("counters")),
    "no rows": lambda f: f.__delitem__("sequences/row"),
    "no group": lambda f: f.__delitem__("sequences"),
    "text as numbers": lambda f: replace_dataset(f, "sequences/cdr3", data=np.arange(500)),
    "variable text": lambda f: replace_dataset(f, "sequences/cdr3", data=["A"] * 500, dtype=h5py.string_dtype()),
    "no pairs": lambda f: f.__delitem__("pairs/offset"),
    "pairs backwards": lambda f: replace_dataset(f, "pairs/offset", data=np.flip(f["pairs/offset"][:])),
    "pairs beyond": lambda f: replace_dataset(f, "pairs/offset", data=f["pairs/offset"][:] * 2),
    "rows read": lambda f: f.attrs.__setitem__("rows_read", 7),
    "rows read as text": lambda f: write_attributes(f, {"rows_read": "many"}),
    "no rows read": lambda f: f.attrs.__delitem__("rows_read"),
    "quantity": lambda f: write_attributes(f, {"quantity": "wishes"}),
    "format as a number": lambda f: f.attrs.__setitem__("format", 7),
    "version as text": lambda f: write_attributes(f, {"format_version": "two"}),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("change", CHANGES)
def test_a_tampered_result(tampered, change):
    with h5py.File(tampered, "r+") as file:
        CHANGES[change](file)
    all_refuse(tampered, str(tampered))


@pytest.mark.parametrize("rows", [0, -1, 500], ids=["all zero", "negative", "beyond"])
def test_rows_that_are_not_those_of_the_table(tampered, rows):
    with h5py.File(tampered, "r+") as file:
        wrong = np.zeros(500, np.int64) if rows == 0 else np.r_[file["sequences/row"][:-1], rows]
        replace_dataset(file, "sequences/row", data=wrong)
    line = refused("export", tampered, "-o", tampered.with_name("t.tsv"), "--junctions", SMALL)
    assert "o.h5: is damaged: /sequences/row does not name each row of the table once" in line


def test_a_chunk_with_a_wrong_checksum(tampered):
    with h5py.File(tampered) as file:
        offset = file["counters"].id.get_chunk_info(0).byte_offset
    data = bytearray(tampered.read_bytes())
    data[offset + 5] ^= 1
    tampered.write_bytes(bytes(data))
    all_refuse(tampered, "o.h5: is damaged: /counters cannot be read")


MOTIF_CHANGES = {
    "negative rows": lambda f: f["edges/row"].__setitem__(0, -5),
    "rows beyond": lambda f: f["edges/column"].__setitem__(0, 10**6),
    "a strand": lambda f: f["edges/strand"].__setitem__(0, 2),
    "10^9 distances": lambda f: f.attrs.__setitem__("d", 10**9),
    "10^11 edges": lambda f: replace_dataset(f, "edges/row", shape=(10**11,), dtype="i4", chunks=(1 << 20,)),
    "no k": lambda f: f.attrs.__delitem__("k"),
    "weights": lambda f: write_attributes(f, {"weights": "{"}),
    "score": lambda f: write_attributes(f, {"score": "luck"}),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("change", MOTIF_CHANGES)
def test_a_tampered_comparison(edges, tmp_path, change):
    path = tmp_path / "m.h5"
    path.write_bytes(edges.read_bytes())
    with h5py.File(path, "r+") as file:
        MOTIF_CHANGES[change](file)
    commands = ("export", "g.graphml"), ("cluster", "c.tsv")
    for line in all_refused(*(("motifs", command, path, "-o", tmp_path / target) for command, target in commands)):
        assert str(path) in line
    assert nothing_left(tmp_path, "m.h5")


RECORDS = [
    "7",
    "[]",
    '{"format": "hpcvdj-run"}',
    '{"format": "hpcvdj-run", "identity": 1, "facts": 2}',
    '{"format": "hpcvdj-run", "identity": {}, "facts": {"slice_rows": "many"}}',
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("text", RECORDS)
def test_a_record_of_other_types(tmp_path, text):
    folder = tmp_path / "o.h5.parts"
    folder.mkdir()
    (folder / "run.json").write_text(text)
    (folder / "part-000000.h5").write_bytes(b"x")
    line = count(SMALL, tmp_path / "o.h5", "--batch-rows", 100, "--resume")
    assert "o.h5.parts: " in line
    assert (folder / "run.json").read_text() == text
