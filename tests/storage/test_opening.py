"""hpcvdj.storage.opening: which files are results, on small files made by hand."""

import struct

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

from hpcvdj.errors import InputError
from hpcvdj.storage import opening
from hpcvdj.storage.damage import MISREAD, damage
from hpcvdj.storage.opening import open_hdf5, root_attributes


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "o.h5", "w") as file:
        file.attrs.update({"format": np.bytes_("test"), "format_version": 2})
        file["a/x"] = np.arange(5)
    return tmp_path / "o.h5"


def opened(path):
    return open_hdf5(path, "hpcvdj count", "test", 2)


def test_attributes_of_any_file(path, tmp_path):
    assert root_attributes(path) == {"format": "test", "format_version": 2}
    (tmp_path / "text").write_text("no HDF5")
    for other in (tmp_path / "text", tmp_path / "missing"):
        with pytest.raises(MISREAD):
            root_attributes(other)
    assert not (tmp_path / "missing").exists()


def test_what_is_no_result_file(path, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("no HDF5")
    (tmp_path / "half.h5.checkpoint").mkdir()
    (tmp_path / "another.h5.parts").mkdir()
    (path.parent / "p.h5").touch()
    for given, message in (
        (tmp_path, rf"is a folder; name a result file; it has 2 results, such as {path}$"),
        (tmp_path / "empty", "is a folder; name a result file$"),
        (tmp_path / "half.h5", "is not complete; `hpcvdj count` with --resume continues it$"),
        (tmp_path / "another.h5", "is not complete; `hpcvdj count` with --resume continues it$"),
        (tmp_path / "none", "no such result file; `hpcvdj count` writes one$"),
        (
            tmp_path / "text",
            r"not a result file, or a damaged one \(.+\); give a file that `hpcvdj count -o NAME\.h5` wrote$",
        ),
    ):
        with pytest.raises(InputError, match=f"^{given}: {message}"):
            opened(given)
    with opened(path) as file:
        assert file["a"]["x"][1:3].tolist() == file["a/x"][1:3].tolist() == [1, 2]
    path.with_name("o.h5.checkpoint").mkdir()
    opened(path).close()


def test_a_refused_file_is_closed(path):
    with pytest.raises(InputError, match="its format is 'test', not 'other'"):
        open_hdf5(path, "hpcvdj x", "other", 2)
    with h5py.File(path, "r+") as file:
        file.attrs["format_version"] = 3
    with pytest.raises(InputError, match=r"format test version 3 is newer than this hpcvdj reads \(2\); update hpcvdj"):
        opened(path)


def external(file):
    """Storage in another file."""
    file.create_dataset("a/y", 5, "i8", external=[("elsewhere", 0, 40)])


def virtual(source):
    """A view of a file of that name."""

    def add(file):
        layout = h5py.VirtualLayout((5,), "i8")
        layout[:] = h5py.VirtualSource(source, "x", (5,), "i8")
        file["a"].create_virtual_dataset("y", layout)

    return add


def chunked(shape, written, chunks, dtype="u1"):
    """A dataset of which some chunks are written."""

    def add(file):
        dataset = file.create_dataset("a/y", shape, dtype, chunks=chunks)
        for start in written:
            dataset.id.write_direct_chunk(start, bytes(int(np.prod(chunks)) * np.dtype(dtype).itemsize))

    return add


CUBE = [(i, j, 0, 0) for i in (0, 2) for j in (0, 2)]


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda f: f["a"].__setitem__("y", h5py.SoftLink("/a/x")), "/a/y is a link, which no result has; do not trust"),
        (lambda f: f.__setitem__("y", h5py.ExternalLink("o", "/x")), ": /y is a link, which no result has"),
        (lambda f: f["a"].__setitem__("y", np.dtype("f8")), "is damaged: /a/y is neither a group nor a dataset"),
        (external, "/a/y is stored in another file; do not trust this file"),
        (virtual("elsewhere.h5"), "/a/y shows elsewhere.h5, which is not a part; do not trust this file"),
        (virtual("x/o.h5.parts/part.h5"), "which is not a part"),
        (virtual("/o.h5.parts"), "which is not a part"),
        (virtual("o.h5.partz/part.h5"), "which is not a part"),
        (virtual("o.h5.parts/part.h5"), None),
        (virtual("50%%.h5.parts/part.h5"), None),
        (lambda f: f.create_dataset("a/y", 5, bool), "/a/y has values of type bool"),
        (lambda f: f.create_dataset("a/y", 5, h5py.string_dtype()), "/a/y has values of type object"),
        *((lambda f, kind=kind: f["a"].__setitem__("y", np.ones(5, kind)), None) for kind in ("i4", "u8", "f4", "S3")),
        (lambda f: f.create_dataset("a/y", 5, "i8"), r"/a/y does not have the values that its shape \(5,\) declares"),
        (lambda f: f.create_dataset("a/y", (0, 3), "i8"), None),
        (chunked((5, 3), [(0, 0), (4, 0)], (4, 3)), None),
        (chunked((5, 3), [(0, 0)], (4, 3)), r"does not have the values that its shape \(5, 3\) declares"),
        (chunked((3, 3, 3), [(0, 0, 0)], (2, 3, 3)), "does not have the values"),
        (chunked((3, 3, 3, 3), CUBE, (2, 2, 3, 3)), None),
        (chunked((3, 3, 3, 3), CUBE[:1], (2, 2, 3, 3)), None),
        (chunked((3, 3, 3, 3), [], (2, 2, 3, 3)), None),
        (chunked((64,), [(0,)], (64,)), None),
        (chunked((65,), [(0,)], (65,)), "does not have the values"),
        (chunked((8,), [(0,)], (8,), "i8"), None),
        (chunked((9,), [(0,)], (9,), "i8"), "does not have the values"),
        (chunked((3, 3, 3, 9), CUBE[:1], (2, 2, 3, 9)), "does not have the values"),
    ],
)  # fmt: skip
def test_a_result_has_all_that_it_declares_and_nothing_else(path, monkeypatch, add, message):
    monkeypatch.setattr(opening, "MOST_CHUNK_BYTES", 64)
    with h5py.File(path, "r+") as file:
        add(file)
    if message is None:
        opened(path).close()
    else:
        with pytest.raises(InputError, match=message) as error:
            opened(path)
        assert str(error.value).startswith(f"{path}: ")
        assert "None" not in str(error.value)


def test_a_name_that_hdf5_takes_for_a_format(path):
    """A view without an end, whose parts are named by their number."""
    with h5py.File(path, "r+") as file:
        view, part = h5s.create_simple((5,), (h5s.UNLIMITED,)), h5s.create_simple((1,))
        view.select_hyperslab((0,), (h5s.UNLIMITED,), (1,), (1,))
        properties = h5p.create(h5p.DATASET_CREATE)
        properties.set_virtual(view, b"o%b.parts/part.h5", b"x", part)
        h5d.create(file.id, b"y", h5t.NATIVE_INT64, h5s.create_simple((5,), (h5s.UNLIMITED,)), properties)
    with pytest.raises(InputError, match=r"/y shows o%b\.parts/part\.h5, which is not a part"):
        opened(path)


def test_a_dataset_that_cannot_be_read(path):
    with h5py.File(path, "r+") as file:
        dataset = file.create_dataset("a/y", 1000, "i8", data=np.arange(1000), chunks=(1000,), fletcher32=True)
        offset = dataset.id.get_chunk_info(0).byte_offset
    data = bytearray(path.read_bytes())
    data[offset + 40] ^= 1
    path.write_bytes(data)
    for names in (["a/y"], ["a", "y"]):
        with opened(path) as file:
            item = file
            for name in names:
                item = item[name]
            with pytest.raises(InputError, match=rf"^{path}: is damaged: /a/y cannot be read \(.+\); copy it again"):
                item[:]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InputError("FILE: is a folder"), "^FILE: is a folder$"),
        (InputError("no column x"), "^FILE: is damaged: no column x; copy it again, or make it again$"),
        (KeyError(), "^FILE: is damaged: KeyError; "),
        (ValueError("wrong\nin two lines"), "^FILE: is damaged: wrong; "),
    ],
)
def test_damage_is_one_line_that_names_the_file(path, error, message):
    with pytest.raises(InputError, match=message.replace("FILE", str(path))), damage(path):
        raise type(error)(*(part.replace("FILE", str(path)) for part in error.args))


HEAP = b"GCOL\x01\0\0\0"


def heap(*objects, size=None, rest=0):
    """A global heap of objects (index, bytes), and its free space."""
    body = b"".join(struct.pack("<H6xQ", index, count) + bytes(-(-count // 8) * 8) for index, count in objects)
    if rest:
        body += struct.pack("<H6xQ", 0, rest) + bytes(rest - 16)
    return HEAP + struct.pack("<Q", 16 + len(body) if size is None else size) + body


@pytest.mark.parametrize(
    ("data", "sound"),
    [
        (heap((1, 8), (2, 3), rest=32), True),
        (b"x" * 5 + heap((1, 1)) + b"y" * 9 + heap((1, 16), (2, 9)), True),
        (heap(), True),
        (heap((1, 8), size=32), False),
        (heap((1, 8)) + bytes(8), True),
        (heap((1, 8), size=48), False),
        (heap((1, 8))[:-1], False),
        (heap((1, 8), rest=16), True),
        (heap((1, 8)) + heap((1, 8), size=0), False),
        (heap((1, 8), size=(1 << 64) - 1), False),
        (heap((1, 8), size=0), False),
        (heap((1, 8), (0, 15)), False),
        (b"x" + HEAP, False),
        (heap()[:-1], False),
        (heap((1, 8), rest=24) + bytes(100), True),
    ],
)
def test_heaps(tmp_path, data, sound):
    (tmp_path / "o.h5").write_bytes(data)
    if sound:
        opening._require_heaps(tmp_path / "o.h5")
    else:
        start = data.rindex(HEAP)
        message = rf"o\.h5: is damaged: the list of its parts at byte {start}; "
        with pytest.raises(InputError, match=message):
            opening._require_heaps(tmp_path / "o.h5")
