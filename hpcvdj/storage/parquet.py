"""Join Parquet files without decoding values: copy the bytes of their row groups, and write one footer for all.

The footer is in Thrift's compact protocol (thrift-compact-protocol.md of Apache Thrift).  Its fields are those of
`parquet.thrift` of Apache Parquet.  Joining changes only the positions of columns in the descriptions of row groups.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from hpcvdj.storage.files import COPIED_BYTES

MAGIC = b"PAR1"

_TAIL_BYTES = 8
"""The last bytes of a file: the length of the footer, and `MAGIC`."""

_TRUE, _FALSE, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = 1, 2, 3, (4, 5, 6), 7, 8, (9, 10), 12
"""Types of the compact protocol."""

_SCHEMA, _ROWS, _ROW_GROUPS = 2, 3, 4
"""Fields of FileMetaData."""

_COLUMNS, _GROUP_OFFSET, _ORDINAL = 1, 5, 7
"""Fields of RowGroup."""

_META_DATA, _CHUNK_OFFSETS = 3, (2, 4, 6)
"""Fields of ColumnChunk: its description; its position and those of its indexes."""

_PAGE_OFFSETS = 9, 10, 11, 14
"""Fields of ColumnMetaData: the positions of its pages and of its Bloom filter."""

_MOST_NUMBERED = 1 << 15
"""The most row groups whose numbers fit into a footer."""


@dataclass
class _Struct:
    """The fields of a struct, by number: [type, value]."""

    fields: dict[int, list[Any]] = field(default_factory=dict)

    def __getitem__(self, number: int) -> Any:
        return self.fields[number][1]

    def __setitem__(self, number: int, value: Any) -> None:
        self.fields[number][1] = value

    def move(self, numbers: Sequence[int], distance: int) -> None:
        """Add `distance` to the fields that have a position; 0 is none."""
        for number in numbers:
            if self.fields.get(number, [0, 0])[1]:
                self.fields[number][1] += distance


@dataclass
class _List:
    """The elements of a list or set, all of one type."""

    kind: int
    items: list[Any]


def _read_unsigned(stream: IO[bytes]) -> int:
    value = shift = 0
    while (byte := stream.read(1)[0]) & 0x80:
        value |= (byte & 0x7F) << shift
        shift += 7
    return value | byte << shift


def _read(stream: IO[bytes], kind: int) -> Any:
    """Decode a value."""
    if kind in _INTEGERS:
        value = _read_unsigned(stream)
        return value >> 1 ^ -(value & 1)
    if kind == _BINARY:
        return stream.read(_read_unsigned(stream))
    if kind == _STRUCT:
        struct, number = _Struct(), 0
        while head := stream.read(1)[0]:
            number = number + (head >> 4) if head >> 4 else _read(stream, _INTEGERS[0])
            struct.fields[number] = [head & 15, _read(stream, head & 15)]
        return struct
    if kind in _LISTS:
        head = stream.read(1)[0]
        size = head >> 4 if head >> 4 < 15 else _read_unsigned(stream)
        # A boolean has a byte of its own in a list, but not in a struct.
        return _List(head & 15, [_read(stream, _BYTE if head & 15 == _FALSE else head & 15) for _ in range(size)])
    if kind in (_TRUE, _FALSE):
        return None
    if kind in (_BYTE, _DOUBLE):
        return stream.read(8 if kind == _DOUBLE else 1)
    raise ValueError(f"a footer has a value of the unknown type {kind}")


def _write_unsigned(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write(out: bytearray, kind: int, value: Any) -> None:
    """Encode a value, as the inverse of `_read`."""
    if kind in _INTEGERS:
        _write_unsigned(out, value << 1 if value >= 0 else (-value << 1) - 1)
    elif kind == _BINARY:
        _write_unsigned(out, len(value))
        out += value
    elif kind == _STRUCT:
        last = 0
        for number, (item_kind, item) in value.fields.items():
            if 0 < number - last < 16:
                out.append(number - last << 4 | item_kind)
            else:
                out.append(item_kind)
                _write_unsigned(out, number << 1)
            _write(out, item_kind, item)
            last = number
        out.append(0)
    elif kind in _LISTS:
        size = len(value.items)
        out.append(min(size, 15) << 4 | value.kind)
        if size >= 15:
            _write_unsigned(out, size)
        for item in value.items:
            _write(out, _BYTE if value.kind == _FALSE else value.kind, item)
    elif kind not in (_TRUE, _FALSE):
        out += value


def join_parquet(parts: Sequence[Path], target: Path, between: Callable[[], None]) -> None:
    """Join Parquet files of one schema, in their order, to the file that a single writer would have written.

    between  called between two steps

    Raises ValueError if their schemas differ.
    """
    footer: _Struct | None = None
    with open(target, "wb") as joined:
        joined.write(MAGIC)
        for part in parts:
            with open(part, "rb") as stream:
                of_part, end = _footer(stream)
                footer = footer or _Struct({**of_part.fields, _ROWS: [6, 0], _ROW_GROUPS: [9, _List(_STRUCT, [])]})
                if of_part[_SCHEMA] != footer[_SCHEMA]:
                    raise ValueError(f"{part} has another schema than {parts[0]}")
                groups = footer[_ROW_GROUPS].items
                for group in of_part[_ROW_GROUPS].items:
                    _move(group, joined.tell() - len(MAGIC), len(groups))
                    groups.append(group)
                footer[_ROWS] += of_part[_ROWS]
                stream.seek(len(MAGIC))
                while data := stream.read(min(COPIED_BYTES, end - stream.tell())):
                    joined.write(data)
                    between()
        assert footer is not None
        text = bytearray()
        _write(text, _STRUCT, footer)
        joined.write(text + len(text).to_bytes(4, "little") + MAGIC)


def _footer(stream: IO[bytes]) -> tuple[_Struct, int]:
    """Return the footer of a file, and the byte where it begins."""
    size = stream.seek(-_TAIL_BYTES, os.SEEK_END) + _TAIL_BYTES
    tail = stream.read(_TAIL_BYTES)
    if tail[4:] != MAGIC:
        raise ValueError(f"{stream.name} is cut short")
    begin = size - _TAIL_BYTES - int.from_bytes(tail[:4], "little")
    stream.seek(begin)
    footer: _Struct = _read(stream, _STRUCT)
    return footer, begin


def _move(group: _Struct, distance: int, number: int) -> None:
    """Move a row group by `distance` bytes, and make it group `number`."""
    group.move([_GROUP_OFFSET], distance)
    if number < _MOST_NUMBERED and _ORDINAL in group.fields:
        group[_ORDINAL] = number
    else:
        group.fields.pop(_ORDINAL, None)
    for chunk in group[_COLUMNS].items:
        chunk.move(_CHUNK_OFFSETS, distance)
        chunk[_META_DATA].move(_PAGE_OFFSETS, distance)
