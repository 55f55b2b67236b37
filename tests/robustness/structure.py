"""Random changes of what is in a file of a run, which stays a sound file: HDF5, JSON records, and states.

A change either leaves what commands write as it was, if they accept the file at all, or makes another legitimate
result: `changed` says which.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hpcvdj.storage import states

HUGE = 1 << 40
DEEP = 100_000
SECRET = "the content of another file "

OTHER_JSON = (
    "null", "true", "0", "-1", "7", "1e999", "NaN", "1.5", '"x"', '""', '"\\ud800"', "[]", "{}", "[null]", '{"x": 1}',
    '"a\\nb"', "9" * 30, "9" * 5000, "[" * DEEP + "]" * DEEP, '{"x":' * DEEP + "1" + "}" * DEEP, "[[0, 1], [2, 3]]",
    "[-5, 3]",
)  # fmt: skip
"""JSON texts of other types, too deep, too large, and text that is not JSON."""


def changed(path: Path, chance: random.Random) -> tuple[str, bool]:
    """Change the file; the change's name, and whether commands that accept it must write what they wrote before."""
    if path.suffix == ".json":
        return _changed_json_file(path, chance)
    return (_changed_state if path.suffix == ".state" else _changed_hdf5)(path, chance)


def _changed_json(text: str, chance: random.Random) -> tuple[str, str]:
    """The text with another value at a random place of its tree, and the place."""
    value: Any = json.loads(text)
    marker, place, holder, key = "\0here", "", {"": value}, ""
    root = holder
    while isinstance(holder[key], dict | list) and holder[key] and chance.random() < 0.8:
        holder = holder[key]
        key = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        place += f".{key}"
    how = chance.choice(("other", "other", "other", "delete", "rename"))
    if how != "other" and holder is not root:
        old = holder.pop(key)
        if how == "rename" and isinstance(holder, dict):
            holder[f"{key}_"] = old
        return json.dumps(root[""]), f"{how} {place}"
    holder[key] = marker
    other = chance.choice(OTHER_JSON)
    return json.dumps(root[""]).replace(json.dumps(marker), other), f"{other[:12]} at {place or 'the root'}"


def _changed_json_file(path: Path, chance: random.Random) -> tuple[str, bool]:
    text, place = _changed_json(path.read_text(), chance)
    path.write_text(text)
    return place, True


def _other_array(values: np.ndarray, chance: random.Random) -> tuple[np.ndarray, str, bool]:
    """An array of another type, shape or content, its name, and whether what it says is the same."""
    kind = chance.choice(("type", "shape", "content", "content"))
    if kind == "type":
        types = ["f8", "i8", "u1", "S3", "U3", "?", "M8[s]", "c16", "O", [("x", "i4"), ("y", "f8")]]
        dtype = np.dtype(chance.choice(types))
        try:
            other = values.astype(dtype)
        except (TypeError, ValueError, OverflowError):
            other = np.zeros(values.shape, dtype)
        same = values.dtype.kind in "SU" or (dtype.names is None and bool(np.array_equal(other, values)))
        return other, f"type {dtype.names or dtype}", same
    if kind == "shape":
        shapes = {
            "scalar": lambda: values.ravel()[0] if values.size else np.zeros((), values.dtype),
            "a row less": lambda: values[:-1] if values.ndim else values[None],
            "a row more": lambda: np.concatenate([values, values[-1:]]) if values.ndim else values[None],
            "a dimension more": lambda: values[..., None],
            "flat": lambda: values.ravel(),
            "no rows": lambda: values[:0] if values.ndim else values[None],
            "no columns": lambda: values[:, :0] if values.ndim > 1 else values[None],
        }
        name = chance.choice(list(shapes))
        return np.asarray(shapes[name]()), name, name != "no columns"
    return _other_content(values, chance)


def _other_content(values: np.ndarray, chance: random.Random) -> tuple[np.ndarray, str, bool]:
    other, name = values.copy(), chance.choice(("least", "zero", "twice", "most", "one more", "out of range"))
    if not values.size:
        return other, "none", True
    flat = other.reshape(-1)
    at = chance.randrange(len(flat))
    if values.dtype.kind in "SU":
        texts = [b"\xff", b"a\tb", b"a\nb", b"", b"{", b'{"x":' * 4, b"x" * values.dtype.itemsize]
        flat[at] = chance.choice(texts) if values.dtype.kind == "S" else "\ud800"
        return other, "another text", False
    if values.dtype.kind == "f":
        flat[at] = chance.choice((np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300))
        return other, f"{flat[at]}", False
    if values.dtype.kind not in "iu":
        return other, "none", True
    limits = np.iinfo(values.dtype)
    if name == "zero":
        other[...] = 0
    elif name == "twice":
        flat[at] = flat[at - 1]
    elif name == "one more":
        flat[at] += 1 if flat[at] < limits.max else 0
    else:
        flat[at] = {"least": limits.min or limits.max // 2, "most": limits.max}.get(name, 10**6 & limits.max)
    return other, name, name in ("least", "most", "out of range")


def _changed_state(path: Path, chance: random.Random) -> tuple[str, bool]:
    """The line of JSON of a state; half of them have a checksum of that line, which is of no run."""
    digest, line, arrays = path.read_bytes().split(b"\n", 2)
    text, place = _changed_json(line.decode(), chance)
    if chance.random() < 0.5:
        digest = states._digest(text.encode(), None).encode()
    path.write_bytes(b"\n".join((digest, text.encode(), arrays)))
    return place, True


def _replace(file: h5py.File, name: str, **options: Any) -> None:
    del file[name]
    file.create_dataset(name, **options)


def _delete(file: h5py.File, name: str, chance: random.Random) -> None:
    del file[name]


def _rename(file: h5py.File, name: str, chance: random.Random) -> None:
    file.move(name, f"{name}_")


def _to_group(file: h5py.File, name: str, chance: random.Random) -> None:
    del file[name]
    file.create_group(name)


def _huge(file: h5py.File, name: str, chance: random.Random) -> None:
    old = file[name]
    shape = (HUGE, *old.shape[1:])
    chunks = chance.choice(((1 << 10,), (1 << 40,))) + tuple(max(1, size) for size in old.shape[1:])
    # HDF5 limits chunks to 4 GiB.
    chunks = (min(chunks[0], (1 << 31) // (old.dtype.itemsize * int(np.prod(chunks[1:])))), *chunks[1:])
    _replace(file, name, shape=shape, dtype=old.dtype, chunks=chunks, compression="gzip")


def _huge_contiguous(file: h5py.File, name: str, chance: random.Random) -> None:
    old = file[name]
    _replace(file, name, shape=(HUGE, *old.shape[1:]), dtype=old.dtype)


def _soft_link(file: h5py.File, name: str, chance: random.Random) -> None:
    file.move(name, f"{name}_")
    file[name] = h5py.SoftLink(chance.choice((f"/{name}_", f"/{name}", "/nowhere", "/")))


def _other_file(file: h5py.File) -> Path:
    return Path(file.filename).with_name("other.h5")


def _external_link(file: h5py.File, name: str, chance: random.Random) -> None:
    with h5py.File(_other_file(file), "w") as other:
        file.copy(name, other, "x")
    del file[name]
    file[name] = h5py.ExternalLink("other.h5", "/x")


def _external_storage(file: h5py.File, name: str, chance: random.Random) -> None:
    secret = _other_file(file).with_name("secret")
    secret.write_bytes((SECRET * 10_000).encode())
    old = file[name]
    _replace(file, name, shape=old.shape, dtype=old.dtype, external=[(str(secret), 0, h5py.h5f.UNLIMITED)])


def _virtual(file: h5py.File, name: str, chance: random.Random) -> None:
    old, values = file[name], file[name][:]
    place = chance.choice(("other.h5", ".", "x.parts/other.h5", "../other.h5"))
    if place == "other.h5":
        with h5py.File(_other_file(file), "w") as other:
            other["x"] = values
    layout = h5py.VirtualLayout(old.shape, old.dtype)
    if old.size:
        layout[:] = h5py.VirtualSource(place, "x", old.shape, old.dtype)
    del file[name]
    file.create_virtual_dataset(name, layout)


def _hard_link(file: h5py.File, name: str, chance: random.Random) -> None:
    others = [other for other in _datasets(file) if other != name]
    target = file[chance.choice(others)]
    del file[name]
    file[name] = target


def _own_ancestor(file: h5py.File, name: str, chance: random.Random) -> None:
    del file[name]
    file[name] = file[name.rpartition("/")[0] or "/"]


def _reference(file: h5py.File, name: str, chance: random.Random) -> None:
    old = file[name]
    rows, target = max(1, len(old)), old.parent
    region = chance.random() < 0.5 and old.size
    values = [old.regionref[:1] if region else target.ref] * rows
    dtype = h5py.regionref_dtype if region else h5py.ref_dtype
    _replace(file, name, data=np.array(values, dtype=object), dtype=dtype)


def _other_type(file: h5py.File, name: str, chance: random.Random) -> None:
    """Types that only HDF5 has."""
    shape = file[name].shape
    dtype: Any = chance.choice(
        (h5py.string_dtype(), h5py.vlen_dtype(np.int32), h5py.enum_dtype({"a": 0, "b": 1}), h5py.opaque_dtype("V5"),
         np.dtype((np.float64, (3,))), h5py.string_dtype("ascii", 3), np.dtype("f2"), np.dtype(">i8"))
    )  # fmt: skip
    _replace(file, name, shape=shape, dtype=dtype)


def _null(file: h5py.File, name: str, chance: random.Random) -> None:
    dtype = file[name].dtype
    _replace(file, name, data=h5py.Empty(dtype))


def _named_type(file: h5py.File, name: str, chance: random.Random) -> None:
    if chance.random() < 0.5:
        del file[name]
        file[name] = np.dtype("f8")
    else:
        file[f"{name}_type"] = np.dtype("f8")


def _unknown_dataset(file: h5py.File, name: str, chance: random.Random) -> None:
    shape = chance.choice((file[name].shape, (), (3,), (2, 2)))
    file.create_dataset(f"{name}_more", shape, chance.choice(("i8", "S3", "f4")))


def _unknown_group(file: h5py.File, name: str, chance: random.Random) -> None:
    parent = chance.choice((file, file[name].parent))
    parent.create_group("further/group")["x"] = np.arange(3)


def _deep_groups(file: h5py.File, name: str, chance: random.Random) -> None:
    group = file
    for _ in range(3000):
        group = group.create_group("g")


def _no_group(file: h5py.File, name: str, chance: random.Random) -> None:
    group = name.partition("/")[0]
    _rename(file, group, chance) if chance.random() < 0.5 else _delete(file, group, chance)


DATASET_CHANGES: dict[str, tuple[Callable[[h5py.File, str, random.Random], None], bool]] = {
    "delete": (_delete, True), "rename": (_rename, True), "a group in its place": (_to_group, True),
    "huge": (_huge, True), "huge, contiguous": (_huge_contiguous, True), "soft link": (_soft_link, True),
    "external link": (_external_link, True), "external storage": (_external_storage, True),
    "virtual": (_virtual, True), "own ancestor": (_own_ancestor, True), "references": (_reference, True),
    "type of HDF5": (_other_type, True), "null": (_null, True), "named type": (_named_type, True),
    "unknown dataset": (_unknown_dataset, True), "unknown group": (_unknown_group, True),
    "deep groups": (_deep_groups, True), "no group": (_no_group, True),
    # What the other dataset says may be what this one could have said.
    "hard link": (_hard_link, False),
}  # fmt: skip
"""By name: the change, and whether commands that accept it must write what they wrote before."""

FREE_TO_DIFFER = ("counters", "weights", "score", "length", "kmers", "own", "expected", "chance", "counters", "offset")
"""Datasets of which any value of the right type may be another result's."""


def _changed_hdf5(path: Path, chance: random.Random) -> tuple[str, bool]:
    with h5py.File(path, "r+") as file:
        if chance.random() < 0.25:
            return _changed_attribute(file, chance)
        name = chance.choice(_datasets(file))
        if chance.random() < 0.45:
            values, change, same = _other_array(file[name][()], chance)
            if values.dtype.kind in "OUM":
                values = values.astype("S")
            _replace(file, name, data=values)
            same &= name.rpartition("/")[2] not in FREE_TO_DIFFER or not change.startswith(("least", "most", "out"))
        else:
            change = chance.choice(list(DATASET_CHANGES))
            function, same = DATASET_CHANGES[change]
            function(file, name, chance)
    return f"{change}: {name}", same


def _changed_attribute(file: h5py.File, chance: random.Random) -> tuple[str, bool]:
    """An attribute of the root group; what it says may be another run's unless it is deleted, or of another type."""
    name = chance.choice(list(file.attrs))
    value = file.attrs[name]
    if isinstance(value, bytes) and value[:1] in (b"{", b"[") and chance.random() < 0.7:
        text, change = _changed_json(value.decode(), chance)
        file.attrs[name] = np.bytes_(text.encode(errors="replace"))
        return f"{change} of attribute {name}", False
    others: dict[str, Any] = {
        "text": np.bytes_(b"x"), "variable text": "x", "no text": np.bytes_(b""), "number": 7, "negative": -1,
        "float": 1.5, "NaN": np.nan, "huge": 2**63 - 1,
        "array": np.arange(3), "texts": np.array([b"a", b"b"]), "bytes": np.bytes_(b"\xff\xfe"),
        "empty": h5py.Empty("f8"), "truth": True, "one in an array": np.array([value]),
        "reference": file.ref, "void": np.void(b"abc"),
    }  # fmt: skip
    change = chance.choice((*others, "delete", "rename"))
    if change in others:
        del file.attrs[name]
        file.attrs[name] = others[change]
    else:
        del file.attrs[name]
        if change == "rename":
            file.attrs[f"{name}_"] = value
    return f"{change}: attribute {name}", change in (
        "delete",
        "rename",
        "empty",
        "texts",
        "reference",
        "void",
        "array",
        "variable text",
    )


def _datasets(file: h5py.File) -> list[str]:
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    return names
