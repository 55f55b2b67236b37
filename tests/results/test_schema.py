"""The layout of result files: what the page says, one declaration for a column, and versions."""

import re

import h5py
import numpy as np
import pytest

import hpcvdj
from hpcvdj.errors import InputError, choices
from hpcvdj.kernels.quantities import Quantity
from hpcvdj.recombination.exclusions import ExclusionKind
from hpcvdj.results import schema
from hpcvdj.results.attributes import ATTRIBUTES, declared, facts_of_result, fits
from hpcvdj.results.facts import read_facts
from hpcvdj.storage.hdf5 import write_attributes
from tests.commands import error_line, hpcvdj_command
from tests.conftest import GERMLINE, ROOT, SMALL
from tests.problems import count_to

PAGE = (ROOT / "docs" / "file_format.md").read_text()


def described():
    """(dataset, type, shape, end of the row in docs/file_format.md) of every dataset."""
    for quantity in choices(Quantity).values():
        yield f"/{quantity.dataset}", np.dtype(quantity.dtype).name, f"[S, {quantity.axis}]", quantity.meaning
    for group, columns in schema.LAYOUT.items():
        for column in columns:
            kind = "text[w]" if column.dtype is schema.TEXT else np.dtype(column.dtype).name
            yield f"/{group}/{column.name}", kind, f"[{column.shape}]", f"; only {column.only}" * bool(column.only)


def test_the_page_has_the_declared_datasets():
    rows = re.findall(r"^\| `(/[a-z_/0-9]+)` \| (.*?) \| (.*?) \| (.+) \|$", PAGE, re.MULTILINE)
    for row, own in zip(rows, described(), strict=True):
        assert row[:3] == own[:3]
        assert row[3].endswith(own[3])
        assert own[3] or "; only " not in row[3]


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


def test_the_page_has_every_attribute():
    section = PAGE.partition("### Attributes of the root group")[2].partition("### Versions")[0]
    words = {str: "text", int: "int64", float: "float64", dict: "text, JSON", list: "text, JSON"}
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \| .+ \|$", section, re.MULTILINE))
    assert rows == {name: words[kind] for name, kind in ATTRIBUTES.items()}


def test_attributes_are_as_they_are_declared(tmp_path, paper_germline):
    """In results and in facts of tables; the writer refuses others."""
    for rows in (0, 100):
        count_to(tmp_path / f"{rows}.h5", SMALL, paper_germline, rows=rows)
    hpcvdj_command("count", SMALL, "-g", GERMLINE, "-o", tmp_path / "o.tsv")
    with hpcvdj.open(tmp_path / "0.h5") as whole, hpcvdj.open(tmp_path / "100.h5") as parts:
        names = whole.provenance.keys() | parts.provenance.keys()
        in_result = facts_of_result(whole.provenance)
    facts = read_facts(tmp_path / "o.tsv")
    assert names <= ATTRIBUTES.keys()
    assert facts.keys() - {"outputs"} == in_result.keys() - {"checkpoint_seconds"}
    assert [name for name, value in facts.items() if name != "outputs" and not fits(name, value)] == []
    for wrong, error in (({"rows": 3}, KeyError), ({"rows_read": "3"}, TypeError), ({"config": "{}"}, TypeError)):
        with pytest.raises(error):
            declared(wrong)


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("sums", "{}", "a JSON array"),
        ("config", "[]", "a JSON object"),
        ("rows_read", "500", "int64"),
        ("python", 3, "text"),
    ],
)
def test_attributes_of_other_types_are_damage(tmp_path, paper_germline, name, value, what):
    count_to(tmp_path / "o.h5", SMALL, paper_germline)
    with h5py.File(tmp_path / "o.h5", "r+") as file:
        del file.attrs[name]
        write_attributes(file, {name: value})
    with pytest.raises(InputError, match=f"is damaged: its attribute {name} is not {what}"):
        hpcvdj.open(tmp_path / "o.h5")


@pytest.fixture
def toy_column(monkeypatch):
    """One declaration: the length of the CDR3."""
    length = schema.Column("cdr3_length", np.uint8, "S", lambda junctions, rows: junctions.repertoire.lengths[rows])
    monkeypatch.setitem(schema.LAYOUT, "sequences", [*schema.LAYOUT["sequences"], length])
    return length.name


@pytest.mark.parametrize("rows", [0, 100])
def test_one_declaration_adds_a_column_everywhere(tmp_path, paper_germline, toy_column, rows):
    """To the file, the parts, the table of a result, and a selection."""
    count_to(tmp_path / "o.h5", SMALL, paper_germline, rows=rows)
    with hpcvdj.open(tmp_path / "o.h5") as result:
        table = result.to_table()
        lengths = [len(text) for text in table["cdr3"].to_pylist()]
        assert table[toy_column].to_pylist() == lengths
        assert result.select(rows=[3]).to_pandas()[toy_column].tolist() == [lengths[result.row.tolist().index(3)]]
        assert result.dataset(f"sequences/{toy_column}").dtype == np.uint8


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
