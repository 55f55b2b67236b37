"""hpcvdj.results.facts: tables and their facts belong together, and appear together."""

import errno
import json
import os

import pyarrow as pa
import pytest

from hpcvdj.errors import CompleteError, InputError, MachineError
from hpcvdj.results import facts
from hpcvdj.results.facts import Targets, read_facts, require_described
from tests.rows import read_batches

IDENTITY = {"tables": [["a.tsv", "1"]], "max_q": 0.1}


def table_of(rows):
    return pa.table({"sequence": pa.array([f"s{k}" for k in range(rows)], pa.string())})


@pytest.fixture(params=["o.tsv", "o.tsv.gz", "o.parquet"])
def targets(request, tmp_path):
    return Targets(tmp_path / request.param)


def written(targets, rows=10, *, overwrite=False, **identity):
    facts = {"command": "enrich", "identity": {**IDENTITY, **identity}}
    targets.write(facts, {targets.table: table_of(rows)}, overwrite=overwrite)


def test_a_complete_table_is_known(targets):
    assert not targets.resume(IDENTITY, overwrite=False), "there is nothing yet"
    written(targets)
    assert len(pa.Table.from_batches(read_batches(targets.table))) == 10
    require_described(targets.table, read_facts(targets.table))
    for overwrite in (False, True):
        with pytest.raises(CompleteError, match="is complete already"):
            targets.resume(IDENTITY, overwrite=overwrite)
    with pytest.raises(InputError, match=r"is of another run \(max_q was 0.1, is 0.2\)"):
        targets.resume({**IDENTITY, "max_q": 0.2}, overwrite=False)
    assert targets.resume({**IDENTITY, "max_q": 0.2}, overwrite=True)


def test_a_table_of_which_a_part_is_missing_is_not_complete(targets):
    written(targets)
    content = targets.table.read_bytes()
    targets.table.write_bytes(content[: len(content) // 10])
    with pytest.raises(InputError, match=r"is not the table that o\..*\.json describes \(its SHA-256 differs\)"):
        targets.resume(IDENTITY, overwrite=False)
    assert targets.resume(IDENTITY, overwrite=True)


@pytest.mark.parametrize("renamed", [1, 2])
@pytest.mark.parametrize("first", [True, False])
def test_what_a_kill_between_two_renames_leaves_is_not_complete(tmp_path, monkeypatch, renamed, first):
    targets = Targets(tmp_path / "o.tsv")
    if not first:
        written(targets, 5, max_q=0.5)
    right, seen = os.replace, []

    def killed(source, target):
        seen.append(target)
        if len(seen) == renamed:
            raise KeyboardInterrupt
        right(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            written(targets, overwrite=not first)
    assert targets.table.exists() == (not first)
    assert targets.facts.exists() == (not first or renamed == 2)
    if first:
        # It starts again, and may replace the facts that it left.
        assert targets.resume(IDENTITY, overwrite=False) == (renamed == 2)
    else:
        with pytest.raises(InputError, match=r"is not the table that|is of another run"):
            targets.resume(IDENTITY, overwrite=False)


def test_figures_that_are_missing_are_made_again(tmp_path):
    targets = Targets(tmp_path / "o.tsv", (tmp_path / "f.svg",))
    written(targets)
    assert targets.resume(IDENTITY, overwrite=False)
    targets.further[0].touch()
    with pytest.raises(CompleteError):
        targets.resume(IDENTITY, overwrite=False)


def test_no_table_appears_if_another_one_cannot_be_written(tmp_path, monkeypatch):
    targets = Targets(tmp_path / "o.tsv", (tmp_path / "p.tsv",))
    right = facts.fill_table

    def full(path, *further):
        if "p.tsv" in path.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return right(path, *further)

    monkeypatch.setattr(facts, "fill_table", full)
    with pytest.raises(MachineError, match=r"p\.tsv: the disk is full"):
        targets.write({}, dict.fromkeys((targets.table, *targets.further), table_of(3)), overwrite=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["[]", "3", "{", '{"outputs": 3}', '{"outputs": []}'])
def test_damaged_facts_are_one_line(tmp_path, text):
    targets = Targets(tmp_path / "o.tsv")
    written(targets)
    targets.facts.write_text(text)
    with pytest.raises(InputError, match=r"o\.tsv\.json: is damaged"):
        require_described(targets.table, read_facts(targets.table))
    with pytest.raises(InputError, match=r"o\.tsv\.json"):
        targets.resume(IDENTITY, overwrite=False)
    assert targets.resume(IDENTITY, overwrite=True)


CHANGES = {
    "a number": lambda said: said | {"rows_read": 8},
    "another setting": lambda said: said | {"identity": {**said["identity"], "max_q": 0.2}},
    "no digest": lambda said: {name: value for name, value in said.items() if name != "facts_sha256"},
    "no outputs": lambda said: {name: value for name, value in said.items() if name != "outputs"},
    "more": lambda said: said | {"x": None},
}


@pytest.mark.parametrize("change", CHANGES)
def test_facts_that_were_changed_are_refused(targets, change):
    targets.write({"rows_read": 7, "identity": IDENTITY}, {targets.table: table_of(3)}, overwrite=False)
    said = json.loads(targets.facts.read_text())
    # Another layout says the same.
    targets.facts.write_text(json.dumps(dict(reversed(said.items()))))
    assert read_facts(targets.table)["rows_read"] == 7
    targets.facts.write_text(json.dumps(CHANGES[change](said)))
    with pytest.raises(InputError, match=r"\.json: is damaged"):
        read_facts(targets.table)
    with pytest.raises(InputError, match=r"\.json: is damaged"):
        targets.resume(IDENTITY, overwrite=False)


def test_facts_that_json_does_not_have_are_as_they_were(targets):
    facts = {"x": float("nan"), "y": (1, 2.5e-300), 3: "\udcff", "identity": IDENTITY}
    targets.write(facts, {targets.table: table_of(3)}, overwrite=False)
    assert read_facts(targets.table)["x"] is None


def test_facts_without_their_table(targets):
    written(targets)
    targets.table.unlink()
    with pytest.raises(InputError, match=r"o\..*: no such table; give that which o\..*\.json describes"):
        require_described(targets.table, read_facts(targets.table))


def test_a_further_table_is_described_too(targets):
    further = targets.table.with_name(f"further_{targets.table.name}")
    written_together = Targets(targets.table, (further,))
    tables = {targets.table: table_of(3), further: table_of(4)}
    written_together.write({}, tables, overwrite=False)
    said = read_facts(targets.table)
    require_described(targets.table, said, [further])
    further.write_bytes(targets.table.read_bytes())
    require_described(targets.table, said)
    with pytest.raises(InputError, match=r"further_o\..*: is not the table that o\..*\.json describes"):
        require_described(targets.table, said, [further])
    further.unlink()
    with pytest.raises(InputError, match=r"further_o\..*: no such table"):
        require_described(targets.table, said, [further])


def test_facts_of_older_versions_do_not_name_their_table(tmp_path):
    (tmp_path / "o.tsv").write_text("a\n1\n")
    require_described(tmp_path / "o.tsv", json.loads('{"command": "enrich"}'))


def test_no_output_is_an_input_or_exists(tmp_path):
    targets = Targets(tmp_path / "o.tsv", (tmp_path / "p.tsv",))
    targets.require([tmp_path / "t.tsv"], overwrite=False)
    for path in (targets.table, targets.facts, *targets.further):
        path.touch()
        with pytest.raises(InputError, match=f"{path.name}: exists already"):
            targets.require([], overwrite=False)
        with pytest.raises(InputError, match=f"{path.name}: is an input of this run"):
            targets.require([path], overwrite=True)
        path.unlink()
    with pytest.raises(InputError, match="must end in"):
        Targets(tmp_path / "o.h5").require([], overwrite=False)


def test_facts_that_are_too_large_are_not_read(tmp_path, monkeypatch):
    targets = Targets(tmp_path / "o.tsv")
    written(targets)
    monkeypatch.setattr(facts, "TEXT_BYTES", 10)
    with pytest.raises(InputError, match=r"o\.tsv\.json: is too large"):
        read_facts(targets.table)
