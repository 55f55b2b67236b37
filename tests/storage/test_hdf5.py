"""hpcvdj.storage: HDF5 reads what was packed; checkpoints carry it over; a full disk is noted; files are checked."""

import errno
import json
import re
import resource
import zlib

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcvdj.errors import InputError, MachineError
from hpcvdj.storage import packed
from hpcvdj.storage.hdf5 import _SafeFile, atomic_hdf5, write_attributes
from hpcvdj.storage.opening import open_hdf5
from hpcvdj.storage.packed import PackedDataset, filters, packed_chunks, write_packed

TYPES = [np.uint64, np.float64, np.int64, np.uint8, h5py.string_dtype("utf-8", 1), h5py.string_dtype("utf-8", 23)]


@pytest.fixture(params=["isal", "zlib"])
def library(request, monkeypatch):
    """With ISA-L, and as on a processor that it does not support."""
    if request.param == "zlib":
        monkeypatch.setattr(packed, "deflate", zlib)


def random_values(rng, shape, dtype):
    raw = rng.integers(1, 127, (*shape, np.dtype(dtype).itemsize), dtype=np.uint8)
    return raw.reshape(-1).view(dtype).reshape(shape)


def put_in_steps(dataset, values, rng, first=0):
    """Put rows in blocks of random sizes."""
    while first < len(values):
        step = int(rng.choice([1, 7, 64, 200]))
        dataset.put(values[first : first + step])
        first += step


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("rest", [(), (1,), (11,)], ids=str)
@pytest.mark.parametrize("rows", [0, 1, 2, 63, 64, 65, 1000])
def test_hdf5_reads_what_was_put(tmp_path, monkeypatch, library, rows, rest, dtype):
    row_bytes = np.dtype(dtype).itemsize * int(np.prod(rest))
    monkeypatch.setattr(packed, "CHUNK_BYTES", 64 * row_bytes + row_bytes // 2)
    rng = np.random.default_rng(rows)
    expected = random_values(rng, (rows, *rest), dtype)
    with h5py.File(tmp_path / "o.h5", "w") as file:
        dataset = PackedDataset(file, "x", expected.shape, dtype)
        put_in_steps(dataset, expected, rng)
        dataset.close()
    with h5py.File(tmp_path / "o.h5") as file:
        read = file["x"]
        assert read.dtype == np.dtype(dtype)
        assert read[:].tolist() == expected.tolist()
        if rows:
            assert read.shuffle == (np.dtype(dtype).kind != "S")
            assert read.fletcher32
            assert read.compression == "gzip"
            assert read.chunks == (min(rows, 64), *rest)
            assert read[rows // 2 : rows // 2 + 3].tolist() == expected[rows // 2 : rows // 2 + 3].tolist()


@given(st.binary(max_size=3000))
def test_checksums_are_those_of_hdf5(data):
    """HDF5 checks them when it reads, so a dataset of these bytes can be read if they are right."""
    if not data:
        assert packed._fletcher32(data) == bytes(4)
        return
    with h5py.File.in_memory() as file:
        dataset = file.create_dataset("x", len(data), np.uint8, chunks=(len(data),), fletcher32=True)
        dataset.id.write_direct_chunk((0,), data + packed._fletcher32(data))
        assert dataset[:].tobytes() == data


@pytest.mark.parametrize("size", [1, 2, 65_535, 65_536, 1 << 20])
@pytest.mark.parametrize("byte", [0, 255])
def test_checksums_of_extreme_data(size, byte):
    data = bytes([byte]) * size
    with h5py.File.in_memory() as file:
        dataset = file.create_dataset("x", size, np.uint8, chunks=(size,), fletcher32=True)
        dataset.id.write_direct_chunk((0,), data + packed._fletcher32(data))
        assert dataset[:].tobytes() == data


def test_damage_is_noticed_when_read(tmp_path):
    path = tmp_path / "o.h5"
    with h5py.File(path, "w") as file:
        dataset = PackedDataset(file, "x", (1000,), np.int64)
        dataset.put(np.arange(1000))
        dataset.close()
        offset = dataset.dataset.id.get_chunk_info(0).byte_offset
    data = bytearray(path.read_bytes())
    data[offset + 40] ^= 1
    path.write_bytes(data)
    with h5py.File(path) as file, pytest.raises(OSError, match="filter returned failure"):
        file["x"][:]


def test_repeated_values_take_less(tmp_path):
    values = np.arange(1 << 20, dtype=np.int64)
    with h5py.File(tmp_path / "o.h5", "w") as file:
        dataset = PackedDataset(file, "row", values.shape, np.int64)
        dataset.put(values)
        dataset.close()
        assert dataset.dataset.id.get_storage_size() < values.nbytes / 3


def test_a_row_larger_than_a_chunk_is_a_chunk(monkeypatch):
    monkeypatch.setattr(packed, "CHUNK_BYTES", 10)
    values = np.arange(12, dtype=np.uint64).reshape(3, 4)
    with h5py.File.in_memory() as file:
        dataset = PackedDataset(file, "counters", values.shape, np.uint64)
        dataset.put(values)
        dataset.close()
        assert dataset.dataset[:].tolist() == values.tolist()


def test_missing_rows_are_noticed():
    with h5py.File.in_memory() as file:
        dataset = PackedDataset(file, "row", (5,), np.int64)
        dataset.put(np.arange(4))
        with pytest.raises(ValueError, match="rows are missing"):
            dataset.close()


@pytest.fixture
def values(monkeypatch):
    """300 rows of 3 columns; a chunk has 21 rows."""
    monkeypatch.setattr(packed, "CHUNK_BYTES", 8 * 64)
    return random_values(np.random.default_rng(7), (300, 3), np.uint64)


def test_datasets_and_chunks_at_once(values):
    with h5py.File.in_memory() as file:
        write_packed(file, "x", values)
        write_packed(file, "y", values[:0])
        assert file["x"].shuffle
        assert file["x"].fletcher32
        assert (file["x"][:] == values).all()
        assert file["y"].shape == (0, 3)
        chunks = [np.ascontiguousarray(values[first : first + 100]) for first in (0, 100, 200)]
        dataset = file.create_dataset("z", values.shape, values.dtype, chunks=(100, 3), **filters(values.dtype))
        for number, data in enumerate(packed_chunks(chunks)):
            dataset.id.write_direct_chunk((100 * number, 0), data)
        assert (dataset[:] == values).all()


def test_texts_are_not_shuffled():
    assert filters(np.uint64) == {"shuffle": True, "compression": "gzip", "compression_opts": 1, "fletcher32": True}
    assert filters("S4") == {"shuffle": False, "compression": "gzip", "compression_opts": 1, "fletcher32": True}


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "o.h5"
    with pytest.raises(ZeroDivisionError), atomic_hdf5(path, overwrite=False) as writer:
        writer.file["x"] = 1
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with atomic_hdf5(path, overwrite=False) as writer:
        write_attributes(writer.file, {"format": "test", "format_version": 3, "list": [1, 2], "text": "é"})
        writer.check()
        assert not path.exists()
    assert list(tmp_path.iterdir()) == [path]
    with open_hdf5(path, "hpcvdj count", "test", 3) as file:
        assert json.loads(file.attrs["list"]) == [1, 2]
        assert file.attrs["text"] == "é"


def test_a_fault_of_the_disk_is_noted_and_hdf5_still_closes(tmp_path):
    path = tmp_path / "o.h5"
    rng = np.random.default_rng(1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.raises(MachineError, match=r"writing failed .*File too large"):  # noqa: SIM117
        with atomic_hdf5(path, overwrite=False) as writer:
            resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
            try:
                values = rng.integers(0, 1 << 60, (4, 4000))
                for number in range(4):
                    writer.file[f"x{number}"] = values[number]
                writer.file.flush()
                # HDF5 reads what the disk did not take.
                assert (writer.file["x3"][:] == values[3]).all()
                with pytest.raises(OSError, match="File too large"):
                    writer.check()
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def small_disk():
    """Files have 1000 bytes at most."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("seed", range(20))
def test_what_the_disk_does_not_take_is_read_from_memory(tmp_path, small_disk, seed):
    """Against bytes in memory: writes anywhere, some across the end of the disk, and reads of what was written."""
    rng, expected = np.random.default_rng(seed), bytearray()
    (tmp_path / "x").touch()
    with _SafeFile(tmp_path / "x") as file:
        for _ in range(60):
            first = rng.choice([0, len(expected)])
            position, count = int(rng.integers(first, len(expected) + 1)), int(rng.integers(1, 200))
            assert file.seek(position) == position
            if rng.random() < 0.5:
                data = rng.bytes(count)
                assert file.write(np.frombuffer(data, np.uint8)) == count
                assert file.tell() == position + count
                expected[position : position + count] = data
                if len(expected) <= 1000:
                    assert file.fault is None
            else:
                count = min(count, len(expected) - position)
                buffer = bytearray(b"?" * count)
                assert file.readinto(buffer) == count
                assert file.tell() == position + count
                assert buffer == expected[position : position + count]
        assert len(expected) > 1000
        assert file.fault.errno == errno.EFBIG


def test_sizes_that_the_disk_does_not_take(tmp_path, small_disk):
    (tmp_path / "x").write_bytes(b"abcdef")
    with _SafeFile(tmp_path / "x") as file:
        buffer = bytearray(4)
        assert (file.seek(4), file.readinto(buffer), bytes(buffer)) == (4, 2, b"ef\0\0")
        assert file.readinto(buffer) == 0
        assert file.truncate(3) == 3
        assert file.fault is None
        assert file.truncate(2000) == 2000
        first = file.fault
        assert first.errno == errno.EFBIG
        file.truncate(3000)
        assert file.fault is first
    assert (tmp_path / "x").read_bytes() == b"abc"


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"format": "other", "format_version": 1}, "its format is 'other', not 'test'; give a file that `hpcvdj x`"),
        ({}, "its format is None"),
        ({"format": "test", "format_version": 4}, "version 4 is newer than this hpcvdj reads"),
    ],
)
def test_other_files_are_refused(tmp_path, attributes, message):
    with h5py.File(tmp_path / "o.h5", "w") as file:
        write_attributes(file, attributes)
    with pytest.raises(InputError, match=message):
        open_hdf5(tmp_path / "o.h5", "hpcvdj x", "test", 3)


def test_texts_of_variable_length(tmp_path):
    """As hpcvdj wrote them at first."""
    with h5py.File(tmp_path / "o.h5", "w") as file:
        file.attrs.update({"format": "test", "format_version": 1, "zz": "text"})
        file["x"] = [1, 2]
    message = r"its attribute format is of variable length, as in files of hpcvdj 0\.1, which are not read; copy"
    with pytest.raises(InputError, match=message):
        open_hdf5(tmp_path / "o.h5", "hpcvdj x", "test", 1)


TEXTS = {"none": "", "some": "é\udcff", "long": "x" * (1 << 20)}


def test_texts_are_of_fixed_width(tmp_path):
    """Nothing is in a global heap, where HDF5 2.0 hangs if it is overwritten with zeros."""
    path = tmp_path / "o.h5"
    with atomic_hdf5(path, overwrite=False) as writer:
        write_attributes(writer.file, {"format": "test", "format_version": 1, **TEXTS})
    assert b"GCOL" not in path.read_bytes()
    with open_hdf5(path, "hpcvdj x", "test", 1) as file:
        assert {name: file.attrs[name] for name in TEXTS} == TEXTS
    with h5py.File(path, "r+") as file:
        file.attrs["some"] = "of variable length"
    with pytest.raises(InputError, match=r"o\.h5: is damaged: its attribute some is of variable length; copy"):
        open_hdf5(path, "hpcvdj x", "test", 1)


def test_a_heap_of_zeros(tmp_path):
    """Parts of a view are listed in global heaps: HDF5 2.0 would never return."""
    path = tmp_path / "o.h5"
    with atomic_hdf5(path, overwrite=False) as writer:
        write_attributes(writer.file, {"format": "test", "format_version": 1, "parts": 300})
        layout = h5py.VirtualLayout((300,), "i8")
        for part in range(300):
            layout[part] = h5py.VirtualSource(f"o.h5.parts/part-{part:06}.h5", "x", (1,), "i8")
        for name in "xyz":
            writer.file.create_virtual_dataset(name, layout)
    with open_hdf5(path, "hpcvdj x", "test", 1) as file:
        assert len(file["x"].virtual_sources()) == 300
    data = path.read_bytes()
    heaps = [match.start() for match in re.finditer(b"GCOL", data)]
    assert len(heaps) >= 3
    for heap in heaps:
        size = int.from_bytes(data[heap + 8 : heap + 16], "little")
        for first, last in ((8, 16), (16, 32), (16, size), (32, 40)):
            if any(data[heap + first : heap + last]):
                path.write_bytes(data[: heap + first] + bytes(last - first) + data[heap + last :])
                # A test that fails here hangs.
                with pytest.raises(InputError, match=r"o\.h5: is damaged"):
                    open_hdf5(path, "hpcvdj x", "test", 1)
