"""Names that users' scripts rely on do not go away: commands, options, Python names, columns, and facts.

tests/stable_names.txt lists them, a name in each line.  New names are added by

python -m tests.test_stable_names

which also shows what has gone.  A name may only go with a new major version, and a line in the changelog.
"""

import inspect
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.analysis import steps
from hpcvdj.repertoires.readers import open_table
from hpcvdj.repertoires.writers import write_table
from tests.commands import hpcvdj_command
from tests.test_options import COMMANDS

LISTED = Path(__file__).with_name("stable_names.txt")
MODEL = "human_trb_m15"
GENES = ("v_call", "j_call", "junction")
DRAWING = "ContaminationSettings", "SharingSettings", "AssociationSettings"
"""Settings of the steps of an analysis with a number of draws, on which no name depends."""


def of_commands() -> Iterator[str]:
    """Every command, and its options."""
    for name, command in COMMANDS.items():
        yield name
        for parameter in command.params:
            yield from (f"{name} {word}" for word in parameter.opts if word.startswith("--") and not parameter.hidden)


def of_python() -> Iterator[str]:
    """Every public name, the parameters of functions, and what objects have."""
    for name in hpcvdj.__all__:
        own = getattr(hpcvdj, name)
        yield f"hpcvdj.{name}"
        if inspect.isfunction(own):
            yield from (f"hpcvdj.{name}({parameter})" for parameter in inspect.signature(own).parameters)
        elif inspect.isclass(own):
            yield from (f"hpcvdj.{name}.{part}" for part in public(own))


def public(kind: type) -> list[str]:
    """The public attributes of a class of this package."""
    own = {field.name for field in fields(kind)} if is_dataclass(kind) else set()
    bases = [base for base in kind.__mro__ if base.__module__.startswith("hpcvdj")]
    own |= {name for base in bases for name in vars(base)}
    return sorted(name for name in own if not name.startswith("_"))


def of_outputs(folder: Path) -> Iterator[str]:
    """Columns and facts of what commands write about a small cohort, and what Python's answers have."""
    drawn = hpcvdj.generate(MODEL, 5_000, seed=5, productive=True, backend="cpu")
    (folder / "tables").mkdir()
    reads = pa.array(2 + np.random.default_rng(1).geometric(0.05, len(drawn)))
    for k in range(4):
        rows = drawn.slice(1_200 * k, 1_200).append_column("duplicate_count", reads.slice(1_200 * k, 1_200))
        write_table(folder / "tables" / f"d{k}.tsv", rows.to_batches(), overwrite=False)
    (folder / "people.tsv").write_text(
        "individual\till\tperson\tmonth\nd0\tyes\ta\t0\nd1\tno\tb\t0\nd2\tyes\ta\t1\nd3\tno\tb\t1\n"
    )
    records = drawn.slice(4_800).select([*GENES[:2], "junction_aa"])
    records = records.append_column("epitope", pa.array(["E1", "E2"] * 100))
    write_table(folder / "records.tsv", records.combine_chunks().to_batches(), overwrite=False)
    about = "--metadata", folder / "people.tsv"
    cpu = "--backend", "cpu"
    with mock.patch.multiple(steps, **{name: partial(getattr(steps, name), draws=10_000) for name in DRAWING}):
        hpcvdj_command(
            "analyze", folder / "tables", "-m", MODEL, *about, "--case", "ill=yes", *cpu, "--force",
            "--database", folder / "records.tsv", "-o", folder / "analysis",
        )  # fmt: skip
    hpcvdj_command(
        "associate", folder / "tables", "-m", MODEL, *about, "--subject", "person", "--time", "month", *cpu, "--force",
        "-o", folder / "expanded.tsv",
    )  # fmt: skip
    table = folder / "tables" / "d0.tsv"
    hpcvdj_command("count", table, "-g", "human_trb", *cpu, "-o", folder / "counted.tsv")
    hpcvdj_command("generate", "-m", MODEL, "-n", "20", *cpu, "-o", folder / "generated.tsv")
    hpcvdj_command("convert", table, "-o", folder / "converted.tsv")
    written = {
        "analyze": "analysis/analysis.json", "contamination": "analysis/contamination.tsv",
        "pgen": "analysis/pgen/d0.tsv.gz", "sharing": "analysis/shared.tsv", "associate": "analysis/associated.tsv",
        "enrich": "analysis/enriched/d0.tsv", "annotate epitopes": "analysis/annotated/d0.epitopes.tsv",
        "annotate hits": "analysis/annotated/d0.hits.tsv", "associate --time": "expanded.tsv", "count": "counted.tsv",
        "generate": "generated.tsv", "convert": "converted.tsv",
    }  # fmt: skip
    for name, path in written.items():
        target = folder / path
        if not path.endswith(".json"):
            yield from (f"column of {name}: {column}" for column in open_table(target).columns)
            target = Path(f"{target}.json")
        if target.exists():
            yield from (f"fact of {name}: {key}" for key in json.loads(target.read_text()))


def of_answers() -> Iterator[str]:
    """What the objects have that Python functions return, by the annotation of these."""
    for name in hpcvdj.__all__:
        own = getattr(hpcvdj, name)
        kind = inspect.signature(own).return_annotation if inspect.isfunction(own) else None
        if inspect.isclass(kind) and kind.__module__.startswith("hpcvdj"):
            yield from (f"{kind.__name__}.{part}" for part in public(kind))


def listed(prefixes: tuple[str, ...]) -> set[str]:
    """The listed names that begin so."""
    return {name for name in LISTED.read_text().splitlines() if name.startswith(prefixes)}


OF_OUTPUTS = ("column of ", "fact of ")


def test_no_command_option_or_python_name_is_gone():
    names = set(LISTED.read_text().splitlines()) - listed(OF_OUTPUTS)
    assert not names - {*of_commands(), *of_python(), *of_answers()}
    # The list is one of names that there are, not a remnant.
    assert len(names) > 900


@pytest.mark.slow
def test_no_column_and_no_fact_is_gone(tmp_path):
    names = listed(OF_OUTPUTS)
    assert not names - {*of_outputs(tmp_path)}
    assert len(names) > 150


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        current = {*of_commands(), *of_python(), *of_answers(), *of_outputs(Path(temporary))}
    before = set(LISTED.read_text().splitlines()) if LISTED.exists() else set()
    LISTED.write_text("\n".join(sorted(current)) + "\n")
    for gone in sorted(before - current):
        sys.stdout.write(f"gone: {gone}\n")
