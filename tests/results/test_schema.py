"""The layout of result files: what the page says, one declaration for a column, and versions."""

import re

import h5py
import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.errors import choices
from hpcvdj.kernels.quantities import Quantity
from hpcvdj.recombination.exclusions import ExclusionKind
from hpcvdj.repertoires.readers import read_batches
from hpcvdj.results import schema
from hpcvdj.results.export import export
from tests.commands import error_line, hpcvdj_command
from tests.conftest import ROOT, SMALL
from tests.problems import count_to

PAGE = (ROOT / "docs" / "file_format.md").read_text()


def described():
    """(dataset, type, shape, meaning) of every dataset."""
    for quantity in choices(Quantity).values():
        yield f"/{quantity.dataset}", np.dtype(quantity.dtype).name, f"[S, {quantity.axis}]", quantity.meaning
    for group, columns in schema.LAYOUT.items():
        for column in columns:
            kind = "text[w]" if column.dtype is schema.TEXT else np.dtype(column.dtype).name
            note = f"; only {column.only}" if column.only else ""
            yield f"/{group}/{column.name}", kind, f"[{column.shape}]", column.meaning + note


def markdown():
    """The table of datasets in docs/file_format.md."""
    lines = ["| dataset | type | shape | content |", "|---|---|---|---|"]
    return "\n".join(lines + [f"| `{name}` | {kind} | {shape} | {text} |" for name, kind, shape, text in described()])


def test_the_page_has_the_declared_datasets():
    assert markdown() in PAGE


def test_the_page_has_every_kind_of_exclusion():
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE.partition("### Rows that are excluded")[2], re.MULTILINE))
    assert {kind.name.lower() for kind in ExclusionKind} <= set(rows)
    for kind in ExclusionKind:
        for text in re.split(r"\{[^}]*\}|no |V|J", kind.message)[:1] if kind is not ExclusionKind.AMINO_ACIDS else ():
            assert text.strip("'") in rows[kind.name.lower()], kind


@pytest.mark.parametrize("rows", [0, 100])
def test_the_file_has_the_declared_datasets(tmp_path, paper_germline, rows):
    count_to(tmp_path / "o.h5", [SMALL], paper_germline, rows=rows)
    others = {f"/{quantity.dataset}" for name, quantity in choices(Quantity).items() if name != "pathways"}
    declared = {name for name, *_ in described()} - others - {"/sequences/anchors"}
    with h5py.File(tmp_path / "o.h5") as file:
        names = []
        file.visititems(lambda name, item: names.append(f"/{name}") if isinstance(item, h5py.Dataset) else None)
    missing = declared - set(names)
    assert set(names) <= declared
    assert missing == ({"/timings/rank_kernel_seconds", "/timings/rank_reduce_seconds"} if rows else set())


def test_the_page_has_every_attribute(tmp_path, paper_germline):
    section = PAGE.partition("### Attributes of the root group")[2].partition("### Versions")[0]
    for rows in (0, 100):
        count_to(tmp_path / f"{rows}.h5", SMALL, paper_germline, rows=rows)
        with h5py.File(tmp_path / f"{rows}.h5") as file:
            for name in file.attrs:
                assert name.startswith("version_") or f"`{name}`" in section, name


@pytest.fixture
def toy_column(monkeypatch):
    """One declaration: the length of the CDR3."""
    length = schema.Column(
        "cdr3_length", np.uint8, "S", "length of the CDR3 in nucleotides",
        lambda junctions, rows: junctions.repertoire.lengths[rows], exported=True,
    )  # fmt: skip
    monkeypatch.setitem(schema.LAYOUT, "sequences", [*schema.LAYOUT["sequences"], length])
    return length.name


@pytest.mark.parametrize("rows", [0, 100])
def test_one_declaration_adds_a_column_everywhere(tmp_path, paper_germline, toy_column, rows):
    """To the file, the parts, the table of a result, a selection, the export, and the documentation."""
    count_to(tmp_path / "o.h5", SMALL, paper_germline, rows=rows)
    with hpcvdj.open(tmp_path / "o.h5") as result:
        table = result.to_table()
        lengths = [len(text) for text in table["cdr3"].to_pylist()]
        assert table[toy_column].to_pylist() == lengths
        assert result.select(rows=[3]).to_pandas()[toy_column].tolist() == [lengths[result.row.tolist().index(3)]]
        assert result.dataset(f"sequences/{toy_column}").dtype == np.uint8
    export(tmp_path / "o.h5", tmp_path / "o.tsv")
    exported = pa.Table.from_batches(read_batches(tmp_path / "o.tsv"))
    by_row = dict(zip(table["row"].to_pylist(), lengths, strict=True))
    assert exported[toy_column].to_pylist() == [str(by_row[row]) for row in range(500)]
    export(tmp_path / "o.h5", tmp_path / "o.parquet")
    assert f"| `/sequences/{toy_column}` | uint8 | [S] | length of the CDR3 in nucleotides |" in markdown()
    assert toy_column in hpcvdj_command("export", "--help-all")[0]


def test_version_1_is_refused(tmp_path, paper_germline):
    count_to(tmp_path / "o.h5", SMALL, paper_germline)
    with h5py.File(tmp_path / "o.h5", "r+") as file:
        file.attrs["format_version"] = 1
    _, err = hpcvdj_command("export", tmp_path / "o.h5", "-o", tmp_path / "o.tsv", code=2)
    assert "o.h5: is of hpcvdj 0.1, which this hpcvdj does not read; count the table again" in error_line(err)


def test_a_column_of_a_later_version_is_no_damage(tmp_path, paper_germline):
    count_to(tmp_path / "o.h5", SMALL, paper_germline)
    with h5py.File(tmp_path / "o.h5", "r+") as file:
        file["sequences/later"] = np.ones(500)
    with hpcvdj.open(tmp_path / "o.h5") as result:
        assert len(result.to_table()) == 500
