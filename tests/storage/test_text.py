"""Small text files: plain or gzip, and one clear line about those that are damaged."""

import gzip
import hashlib
import io
import os
import re
import threading
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest

from hpcvdj.errors import InputError
from hpcvdj.recombination.germline import read_germline
from hpcvdj.storage import inputs
from hpcvdj.storage.inputs import (
    DigestedFile,
    LimitedStream,
    digest_ahead,
    file_digest,
    file_state,
    read_text,
    require_regular,
    require_unchanged,
)
from tests.conftest import GERMLINE

PACKED = gzip.compress(GERMLINE.read_bytes(), mtime=0)


def flipped(place):
    changed = bytearray(PACKED)
    changed[place] ^= 0xFF
    return bytes(changed)


@pytest.mark.parametrize(
    "pack",
    [
        lambda data: data, gzip.compress, lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:]),
        lambda data: pa.compress(data, "zstd", asbytes=True),
    ],
    ids=["plain", "gzip", "gzip in parts", "zstd"],
)  # fmt: skip
def test_plain_and_packed(tmp_path, pack):
    path = tmp_path / "t"
    path.write_bytes(pack("\ufeffé\tb\r\nc\n".encode()))
    assert read_text(path, "table", "") == "é\tb\r\nc\n"
    path.write_bytes(pack(b""))
    assert read_text(path, "table", "") == ""


@pytest.mark.parametrize(
    "content",
    [
        PACKED[:5],
        PACKED[:-9],
        PACKED + b"x",
        flipped(2),
        flipped(40),
        flipped(-6),
        flipped(-2),
        b"\x1f\x8b",
        b"\xff\xfea",
    ],
    ids=["head", "cut", "more after it", "unknown method", "deflate stream", "checksum", "length", "magic", "UTF-16"],
)
def test_damage_is_one_line(tmp_path, content):
    path = tmp_path / "g.tsv.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"g\.tsv\.gz: not a readable germline table \(.+\); ") as error:
        read_germline(path)
    assert "\n" not in str(error.value)


def test_what_is_not_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        kind = "is a folder" if path.is_dir() else "not a regular file"
        with pytest.raises(InputError, match=re.escape(f"{path}: {kind}; name a germline table on disk")):
            read_germline(path)
    with pytest.raises(InputError, match="none: no such table; write it first"):
        read_text(tmp_path / "none", "table", "write it first")
    with pytest.raises(InputError, match="the file name is not UTF-8"):
        read_text(tmp_path / os.fsdecode(b"\xff"), "table", "")


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress])
def test_a_text_that_is_too_large(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(inputs, "TEXT_BYTES", 1 << 20)
    (tmp_path / "t").write_bytes(pack(b"x" * (1 << 20)))
    assert len(read_text(tmp_path / "t", "table", "")) == 1 << 20
    (tmp_path / "t").write_bytes(pack(b"x" * ((1 << 20) + 1)))
    with pytest.raises(InputError, match="more than 1 MiB once it is unpacked"):
        read_text(tmp_path / "t", "table", "")


class Endless:
    """A stream of zeros that counts what is asked of it."""

    asked = 0

    def read(self, size):
        self.asked += size
        return bytes(size)


def test_no_more_is_read_than_may_be():
    """A small packed file may hold more than the memory does."""
    stream = Endless()
    limited = LimitedStream(stream, 5 << 20)
    assert limited.read(1 << 20) == bytes(1 << 20)
    assert stream.asked == 1 << 20
    with pytest.raises(ValueError, match="more than 5 MiB once it is unpacked"):
        limited.readall()
    assert stream.asked == (5 << 20) + 1


def test_digests(tmp_path):
    path = tmp_path / "t"
    path.write_bytes(b"a")
    state = file_state(path)
    assert file_digest(path) == file_digest(path, state) == hashlib.sha256(b"a").hexdigest()
    path.write_bytes(b"other")
    with pytest.raises(InputError, match="t: changed while it was read; start again when it is complete"):
        file_digest(path, state)
    assert file_state(tmp_path / "none") is None


def test_a_name_that_the_system_refuses(tmp_path):
    path = tmp_path / ("x" * 300)
    with pytest.raises(InputError, match=r"x: cannot be read \(File name too long\)$"):
        require_regular(path, "table", "")


def test_a_file_that_was_changed_and_dated_back(tmp_path):
    path = tmp_path / "t"
    path.write_bytes(b"a")
    state, times = file_state(path), path.stat()
    require_unchanged(path, state)
    path.write_bytes(b"b")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(InputError, match="changed while it was read"):
        require_unchanged(path, state)


def test_a_file_is_read_once_until_it_changes(tmp_path, monkeypatch):
    """The files of a folder that is replaced were read three times, 3 s each for 10^8 rows."""
    path = tmp_path / "a"
    path.write_bytes(b"a")
    read = mock.Mock(wraps=hashlib.file_digest)
    monkeypatch.setattr(hashlib, "file_digest", read)
    # What has just been written may change within the same tick of the clock.
    assert file_digest(path) == file_digest(path)
    assert read.call_count == 2
    monkeypatch.setattr(inputs, "_TICKS_NS", -(10**10))
    before = file_digest(path)
    assert file_digest(path) == before
    assert read.call_count == 3
    path.write_bytes(b"b")
    assert file_digest(path) == hashlib.sha256(b"b").hexdigest() != before
    # Another file in its place.
    other = tmp_path / "other"
    other.write_bytes(b"c")
    other.replace(path)
    assert file_digest(path) == hashlib.sha256(b"c").hexdigest()


def test_digests_that_are_taken_ahead(tmp_path, monkeypatch):
    """Each file is read once, in another thread; one that is missing, or was just written, later."""
    paths = [tmp_path / name for name in ("a", "b", "none")]
    for path in paths[:2]:
        path.write_text(path.name)
    read, here = [], threading.get_ident()

    def digest(path):
        read.append((path.name, threading.get_ident() == here))
        return hashlib.sha256(path.read_bytes()).hexdigest()

    monkeypatch.setattr(inputs, "_digest", digest)
    # The files were just written.
    before = dict(inputs._AHEAD)
    digest_ahead(paths)
    assert before == inputs._AHEAD
    monkeypatch.setattr(inputs, "_TICKS_NS", -(10**10))
    # A link to a file, and a file that is read ahead already, are the same file.
    (tmp_path / "link").symlink_to(paths[0])
    os.link(paths[0], tmp_path / "name")
    digest_ahead([paths[0], tmp_path / "link", tmp_path / "name"])
    digest_ahead([*paths, tmp_path])
    for path in paths[:2]:
        assert file_digest(path) == hashlib.sha256(path.name.encode()).hexdigest()
    assert sorted(read) == [("a", False), ("b", False)]
    paths[0].write_text("other")
    assert file_digest(paths[0]) == hashlib.sha256(b"other").hexdigest()
    assert read[2:] == [("a", True)]


@pytest.mark.parametrize("failure", [FileNotFoundError, MemoryError])
def test_a_file_whose_digest_cannot_be_taken(tmp_path, monkeypatch, failure):
    """The next one of the list has its own outcome."""
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.write_text(path.name)
    monkeypatch.setattr(inputs, "_TICKS_NS", -(10**10))
    monkeypatch.setattr(inputs, "_digest", mock.Mock(side_effect=[failure, "digest of b"]))
    digest_ahead(paths)
    with pytest.raises(failure):
        file_digest(paths[0])
    assert file_digest(paths[1]) == "digest of b"


def test_a_new_file_is_not_read_for_its_digest(tmp_path, monkeypatch):
    path, parts = tmp_path / "a", [b"x" * 9_000, b"", memoryview(b"yz"), b"w" * 100_000]
    with DigestedFile(path) as stream:
        assert [stream.write(part) for part in parts] == list(map(len, parts))
    monkeypatch.setattr(inputs, "_digest", mock.Mock(side_effect=AssertionError("is read")))
    assert path.read_bytes() == b"".join(parts)
    assert file_digest(path) == hashlib.sha256(b"".join(parts)).hexdigest()
    # It may have changed since, within the same tick of the clock.
    with pytest.raises(AssertionError, match="is read"):
        file_digest(path)


def test_a_file_that_was_not_written_whole_has_no_digest(tmp_path):
    before = dict(inputs._AHEAD)
    with pytest.raises(OSError, match="No space left"), DigestedFile(Path("/dev/full")) as stream:
        stream.write(b"x" * 10_000_000)
    with DigestedFile(tmp_path / "a") as stream:
        stream.write(b"abc")
        for change in (lambda: stream.seek(0), lambda: stream.truncate(1)):
            with pytest.raises(io.UnsupportedOperation):
                change()
        assert not stream.seekable()
        assert stream.tell() == 3
    assert len(inputs._AHEAD) == len(before) + 1
