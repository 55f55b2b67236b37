"""Change results, their facts and what unfinished runs saved, or exchange them between runs; then resume or read them.

python tests/robustness/changed_results.py --cases 600 --seed 1 2 -o results/robustness/campaigns/changed_results.csv

Each run is made as it is, with other settings, of another table of the same name, and killed in its midst (as it is,
and with other settings).  A case takes the files of a complete or a killed run, changes some, and runs the same command
with --resume, or one that reads them.  Allowed is what the run makes without the change, or 2 and one line, after which
the files are as they were.  Another table of that name must give its own result, or be refused.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import mutate
import structure
from campaign import Case, campaign, ended, errors_of, made, parsed
from kill_outputs import OF_THE_RUN, content, with_copies

from hpcvdj.recombination.igor import FILES
from hpcvdj.results.slice_files import SliceFiles
from hpcvdj.runs.folder import RunFolder
from hpcvdj.values.at_once import UnitStore

MODEL = mutate.MODEL
SETTINGS, TABLE = "settings", "table"
OTHERS = (SETTINGS, TABLE)
"""The other runs whose files may take the place of a run's."""

COMPLETE, KILLED = "complete", "killed"


@dataclass(frozen=True)
class Run:
    """A run, and what reads its files.

    words   the command without its output, which is `target`
    other   further words, of the run with other settings
    table   what is another one in the run of another table
    killed  the method after whose n-th call the run is killed: what is saved then is continued
    readers commands that read the files
    """

    words: tuple[str, ...]
    other: tuple[str, ...]
    target: str
    table: str
    killed: tuple[Any, str, int] | None = None
    readers: tuple[tuple[str, ...], ...] = ()

    def command(self, *, other: bool = False) -> tuple[str, ...]:
        return (*self.words, *self.other * other, "-o", self.target)


REPORT = ("report", "TARGET", "-o", "page.html")
RUNS = {
    "count": Run(
        ("count", "t.tsv", "-g", str(mutate.GERMLINE), "--max-n", "2"), ("--d-forms", "distinct"), "o.tsv", "t.tsv",
        readers=(REPORT,),
    ),
    "count, saved": Run(
        mutate.ENUMERATED, ("--d-forms", "distinct"), "o.h5", "u.tsv", (UnitStore, "save", mutate.SAVES),
        (REPORT, ("export", "TARGET", "-o", "page.tsv")),
    ),
    "count, in slices": Run(
        mutate.IN_SLICES, ("--d-forms", "distinct"), "o.h5", "t.tsv", (SliceFiles, "finish", 2),
        (REPORT, ("export", "TARGET", "-o", "page.tsv")),
    ),
    "pgen": Run(("pgen", "y.tsv", *MODEL), ("--genes", "any"), "o.parquet", "y.tsv", readers=(REPORT,)),
    "pgen, in slices": Run(
        ("pgen", "y.tsv", *MODEL, "--batch-rows", "20"), ("--genes", "any"), "o.h5", "y.tsv",
        (SliceFiles, "finish", 2),
        (
            ("explain", "TARGET", "--id", "ID", *MODEL[:2], "--output-format", "json"),
            ("export", "TARGET", "-o", "page.tsv"),
        ),
    ),
    "enrich": Run(
        ("enrich", "y.tsv", *mutate.ENRICH, "--keep-misfits"), ("--kappa", "2"), "o.tsv", "y.tsv", readers=(REPORT,)
    ),
    "enrich a folder": Run(
        ("enrich", "y.tsv", "c.tsv", *mutate.ENRICH, "--keep-misfits"), ("--kappa", "2"), "o", "y.tsv",
        readers=(REPORT,),
    ),
    "annotate": Run(
        ("annotate", "y.tsv", *MODEL, "--database", "b.tsv", "--keep-misfits"), ("--kappa", "2"), "o", "y.tsv",
        readers=(REPORT,),
    ),
    "infer": Run(
        ("infer", "n.tsv", *MODEL, "--iterations", "3", "--hold-out", "0"), ("--prior", "2"), "o", "n.tsv",
        (RunFolder, "save", 1),
    ),
    "motifs compare": Run(
        mutate.COMPARE, ("--distinct",), "o.h5", "s.fasta", (RunFolder, "save", 1),
        (("motifs", "export", "TARGET", "-o", "page.tsv", "--min-score", "0"),),
    ),
}  # fmt: skip


def prepare(work: Path, names: Sequence[str], expected: dict[tuple[str, ...], Any]) -> None:
    """The tables, and the files of the runs in a folder for each; what they and their readers must give."""
    mutate.prepare(work)
    with_copies(work / "y.tsv", work / "c.tsv")
    made(
        work,
        ("generate", *MODEL[:2], "-n", "300", "-o", "n.tsv"),
        ("generate", *MODEL[:2], "-n", "40", "--productive", "--seed", "9", "-o", "w.tsv"),
        ("generate", *MODEL[:2], "-n", "300", "--seed", "9", "-o", "x.tsv"),
    )
    with_copies(work / "w.tsv", work / "x.tsv")
    for name in names:
        own = RUNS[name]
        other = work / f"other {own.table}"
        for kept, further, table in ((COMPLETE, False, False), (SETTINGS, True, False), (TABLE, False, True)):
            if table:
                exchanged(work, own)
            before = set(work.iterdir())
            made(work, own.command(other=further))
            expected[name, kept] = of_files(work / own.target)
            for number, words in enumerate(own.readers):
                if kept == SETTINGS:
                    continue
                made(work, reading(own, words, work))
                expected[name, kept, str(number)] = of_reader(work)
                removed(work, "page*")
            move(work, before, f"{name} {kept}")
            if table:
                exchanged(work, own)
        for kept, further in ((KILLED, False), (f"{KILLED} {SETTINGS}", True)):
            if own.killed is not None:
                before = set(work.iterdir())
                stop = partial(mutate.end_after, *own.killed)
                code, said, *_ = mutate.ended(own.command(other=further), work, stop)
                assert code == mutate.KILLED, (name, code, said)
                move(work, before, f"{name} {kept}")
        assert not other.exists() or other.is_file()


def exchanged(work: Path, own: Run) -> None:
    """Exchange a run's table with another one."""
    other = work / f"other {own.table}"
    if not other.exists():
        lines = (work / own.table).read_text().splitlines(keepends=True)
        # Rows of a table but the last one; the names of a FASTA file keep their sequences.
        last = -2 if own.table.endswith(".fasta") else -1
        other.write_text("".join(lines[:last]))
    (work / own.table).rename(work / "between")
    other.rename(work / own.table)
    (work / "between").rename(other)


def move(work: Path, before: set[Path], name: str) -> None:
    """Move what a run made to a folder."""
    (work / name).mkdir()
    for path in set(work.iterdir()) - before - {work / name, work / mutate.LOG}:
        path.rename(work / name / path.name)


def removed(work: Path, pattern: str) -> None:
    """Remove what a reader wrote."""
    for path in work.glob(pattern):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def reading(own: Run, words: tuple[str, ...], work: Path) -> tuple[str, ...]:
    """The words of a command that reads the files."""
    named = {"TARGET": own.target}
    if "ID" in words:
        named["ID"] = (work / own.table).read_text().splitlines()[5].split("\t")[0]
    return tuple(named.get(word, word) for word in words)


def of_reader(work: Path) -> Any:
    """What a reader wrote; of pages, without their times."""
    return {str(path.relative_to(work)): content(path) for path in work.rglob("page*") if path.is_file()}


def of_files(target: Path) -> Any:
    """What the files of a result say."""
    if target.is_dir():
        names = FILES if (target / FILES[0]).exists() else [path.name for path in sorted(target.iterdir())]
        return {name: of_files(target / name) for name in names}
    if target.suffix == ".h5":
        return mutate.content(target)
    facts = target.with_name(f"{target.name}.json")
    return content(target), of_facts(facts) if facts.exists() else None


def of_facts(path: Path) -> Any:
    """What facts say that must be so."""
    return {name: value for name, value in json.loads(path.read_text()).items() if not varies(name)}


def varies(name: str) -> bool:
    """Whether a fact is of one run."""
    return name in OF_THE_RUN or "seconds" in name or name in ("hosts", "ranks", "processes", "provenance")


Change = Callable[[Path, random.Random], str]


def _cut(path: Path, chance: random.Random) -> str:
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    whole = chance.random() < 0.6 and len(lines) > 1
    path.write_bytes(
        b"".join(lines[: chance.randrange(1, len(lines))]) if whole else data[: chance.randrange(len(data))]
    )
    return "cut"


def _byte(path: Path, chance: random.Random) -> str:
    data = bytearray(path.read_bytes())
    digits = [k for k, byte in enumerate(data) if 48 <= byte < 58]
    at = chance.choice(digits) if digits and chance.random() < 0.7 else chance.randrange(len(data))
    data[at] = 48 + (data[at] - 47) % 10 if 48 <= data[at] < 58 else data[at] ^ 1
    path.write_bytes(bytes(data))
    return f"byte {at}"


def _number(path: Path, chance: random.Random) -> str:
    """Another number in JSON."""
    facts = json.loads(path.read_text())
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        for key, own in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(own, dict | list):
                walk(own)
            elif isinstance(own, int | float) and not isinstance(own, bool):
                places.append((value, key))

    walk(facts)
    if not places:
        return _json(path, chance)
    holder, key = chance.choice(places)
    holder[key] += chance.choice((1, -1, 1000))
    path.write_text(json.dumps(facts, indent=1))
    return f"{key} {holder[key]}"


def _json(path: Path, chance: random.Random) -> str:
    return structure.changed(path, chance)[0]


def _structure(path: Path, chance: random.Random) -> str:
    """Another structure, unless it is another legitimate result."""
    before = path.read_bytes()
    change, same = structure.changed(path, chance)
    if not same:
        path.write_bytes(before)
        return _byte(path, chance)
    return change


def _gone(path: Path, chance: random.Random) -> str:
    path.unlink()
    return "removed"


CHANGES: dict[str, tuple[Change, ...]] = {
    ".json": (_number, _number, _number, _json, _byte, _cut, _gone),
    ".h5": (_structure, _cut, _gone),
    ".state": (_structure, _cut, _gone),
}
"""By the suffix of a file; of other files those of texts."""


def change(work: Path, name: str, stage: str, chance: random.Random, *, read: bool) -> tuple[str, bool]:
    """Change the files of a run in `work`; what was done, and whether the run's table is another one.

    read  they are to be read: all files of another run together would be a legitimate result
    """
    own = RUNS[name]
    files = [path for path in files_of(work, name, stage) if path.is_file()]
    drawn = chance.random()
    if drawn < 0.12 and not read:
        exchanged(work, own)
        return "another table of this name", True
    others = [other for other in OTHERS if (work / f"{name} {other_of(stage, other)}").is_dir()]
    if drawn < 0.45 and others and (len(files) > 1 or not read):
        folder = work / f"{name} {other_of(stage, chance.choice(others))}"
        swapped = chance.sample(files, 1 if read else chance.randrange(1, len(files) + 1))
        for path in swapped:
            source = folder / path.relative_to(work)
            table = source.with_name(source.name.removesuffix(".json"))
            # Facts of another run with an equal table are legitimate facts of this one.
            like = work / table.relative_to(folder)
            alike = read and table.is_file() and table.read_bytes() == like.read_bytes()
            if source.exists() and not alike:
                shutil.copyfile(source, path)
        shown = " ".join(str(path.relative_to(work)) for path in swapped)
        return f"{shown} of {folder.name}", False
    path = chance.choice(files)
    hows = CHANGES.get(path.suffix, (_cut, _byte, _byte, _gone))
    # What reads a table can do without its facts, and without other tables.
    hows = [own for own in hows if own is not _gone or not read or path.suffix == ".h5"]
    how = chance.choice(hows)(path, chance)
    return f"{path.relative_to(work)}: {how}", False


def other_of(stage: str, other: str) -> str:
    """The folder of another run of a stage."""
    return other if stage == COMPLETE else f"{stage} {other}"


def files_of(work: Path, name: str, stage: str) -> list[Path]:
    """The files of a run, which are in `work`; without hidden ones, such as locks that a kill left."""
    folder = work / f"{name} {stage}"
    found = [path.relative_to(folder) for path in sorted(folder.rglob("*"))]
    return [work / path for path in found if not path.name.startswith(".")]


def run(
    case: Case, work: Path, chance: random.Random, names: Sequence[str], expected: dict[tuple[str, ...], Any]
) -> None:
    """Draw a case, run it, and compare."""
    name = names[case.number % len(names)]
    own = RUNS[name]
    stage = KILLED if own.killed is not None and chance.random() < 0.5 else COMPLETE
    for path in (work / f"{name} {stage}").iterdir():
        shutil.copytree(path, work / path.name) if path.is_dir() else shutil.copy(path, work)
    read = own.readers and stage == COMPLETE and chance.random() < 0.4
    reader = chance.randrange(len(own.readers)) if read else None
    how, other = change(work, name, stage, chance, read=reader is not None)
    case.kind = f"{name}, {stage}: {how}"[:300]
    before = {path: path.read_bytes() for path in files_of(work, name, stage) if path.is_file()}
    words = (*own.command(), "--resume") if reader is None else reading(own, own.readers[reader], work)
    lines = ended(case, words, work)
    if case.fault:
        return
    errors = errors_of(lines)
    if case.exit_code == 0:
        if reader is None:
            try:
                same = of_files(work / own.target) == expected[name, TABLE if other else COMPLETE]
            except (OSError, ValueError, KeyError) as error:
                case.fault = f"an unreadable result: {type(error).__name__}"
                return
        else:
            same = of_reader(work) == expected[name, COMPLETE, str(reader)]
        case.fault = "" if same else "another result without a word"
    elif len(errors) != 1 and own.target != "o":
        case.fault = "not one line"
    elif any(not path.exists() or path.read_bytes() != data for path, data in before.items()):
        case.fault = "refused, and changed"


if __name__ == "__main__":
    arguments = parsed(__doc__ or "", 300)
    arguments.add_argument("--runs", nargs="*", choices=list(RUNS), default=list(RUNS))
    given = arguments.parse_args()
    results: dict[tuple[str, ...], Any] = {}
    sys.exit(campaign(
        given, Case, partial(prepare, names=given.runs, expected=results),
        partial(run, names=given.runs, expected=results),
    ))  # fmt: skip
