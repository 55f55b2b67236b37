"""Name outputs that are, have, are in, or lead to the inputs of every command that writes, and look at what is left.

python tests/robustness/over_inputs.py --cases 1000 --seed 1 2 -o results/robustness/campaigns/over_inputs.csv

A case draws a command, one of its outputs, one of its inputs, how the output is related to it, and --overwrite and
--resume.  Nothing that was there may change: bytes, names, links, permissions, times.  If the command would write to
the input, it must end with 2 and one line that names the file, and leave nothing.  What leads near an input, such as a
folder beside it, may be written.
"""

from __future__ import annotations

import random
import shutil
import stat
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import mutate
from campaign import Case, campaign, ended, errors_of, made, parsed
from kill_outputs import with_copies

from hpcvdj.storage.inputs import file_digest

MODEL = ("-m", "model")
ON_CPU = ("--backend", "cpu")
GERMLINE = ("-g", "g.tsv", "--max-n", "1")
METADATA = ("--metadata", "m.tsv", "--group", "group")


@dataclass(frozen=True)
class Command:
    """A command: its words, of which those that exist are inputs, and its outputs by option.

    behind   further files that it reads
    options  of --overwrite and --resume those that it has
    """

    words: tuple[str, ...]
    outputs: dict[str, str]
    behind: tuple[str, ...] = ()
    options: tuple[str, ...] = ("--overwrite",)

    @property
    def several(self) -> bool:
        """Whether there is a result for each table of a folder."""
        return self.outputs == {"-o": "out"}

    def inputs(self, work: Path) -> list[Path]:
        """Files and folders that it reads, files in these folders included."""
        named = [work / word for word in (*self.words, *self.behind) if (work / word).exists()]
        inside = [file for path in named if path.is_dir() for file in path.iterdir()]
        return sorted({*named, *inside})


BOTH = ("--overwrite", "--resume")
COMMANDS = {
    "count": Command(("count", "t.tsv", *GERMLINE), {"-o": "o.h5"}, options=BOTH),
    "count to a table": Command(("count", "t.tsv", *GERMLINE), {"-o": "o.tsv"}, options=BOTH),
    "count a folder": Command(("count", "tables", *GERMLINE), {"-o": "out"}, options=BOTH),
    "count in slices": Command(
        ("count", "tables", "--together", *GERMLINE, "--batch-rows", "20"), {"-o": "o.h5"}, options=BOTH
    ),
    "pgen": Command(("pgen", "y.tsv", *MODEL, *ON_CPU), {"-o": "o.h5"}, options=BOTH),
    "pgen to a table": Command(
        ("pgen", "aa.tsv", *MODEL, *ON_CPU, "--alphabet", "alphabet.txt"), {"-o": "o.parquet"}, options=BOTH
    ),
    "sharing": Command(
        ("sharing", "cohort", *MODEL, *ON_CPU, *METADATA, "--draws", "1000", "--q", "1"),
        {"-o": "o.tsv", "--overlap": "p.tsv", "--plot": "p.svg"},
    ),
    "contamination": Command(
        ("contamination", "cohort", *MODEL, *ON_CPU, *METADATA, "--draws", "1000", "--min-low", "1"),
        {"-o": "o.tsv", "--junctions-out": "j.parquet", "--plot": "p.svg", "--write-clean": "clean"},
    ),
    "enrich": Command(
        ("enrich", "y.tsv", "--control", "c.tsv", *ON_CPU, *mutate.ENRICH[-2:], *MODEL),
        {"-o": "o.tsv", "--plot": "p.png"}, options=BOTH,
    ),
    "enrich a folder": Command(("enrich", "cohort", *mutate.ENRICH[2:], *MODEL), {"-o": "out"}, options=BOTH),
    "annotate": Command(
        ("annotate", "cohort", *MODEL, *ON_CPU, "--kappa", "1", "--database", "b.tsv"), {"-o": "folder"}, options=BOTH
    ),
    "associate": Command(
        (
            "associate", "cohort", *MODEL, *ON_CPU, *METADATA[:2], "--case", "group=a", "--draws", "1000",
            "--min-individuals", "2",
        ),
        {"-o": "o.tsv", "--donors": "d.tsv", "--plot": "p.svg"},
    ),
    "infer": Command(
        ("infer", "n.tsv", *MODEL, *ON_CPU, "--iterations", "2"), {"-o": "folder"}, options=BOTH
    ),
    "infer from germline": Command(
        ("infer", "n.tsv", "-g", "h.tsv", *ON_CPU, "--iterations", "1"), {"-o": "folder"}, options=BOTH
    ),
    "infer-selection": Command(
        ("infer-selection", "many.tsv", *MODEL, *ON_CPU, "--max-junctions", "1000"), {"-o": "folder"}
    ),
    "generate": Command(("generate", *MODEL, "-n", "10", *ON_CPU), {"-o": "o.tsv.gz"}),
    "generate --like": Command(("generate", *MODEL, "--like", "cohort", *ON_CPU), {"-o": "o.tsv"}),
    "simulate": Command(("simulate", "-g", "g.tsv", "-n", "10"), {"-o": "o.parquet"}),
    "convert": Command(("convert", "y.tsv", "c.tsv"), {"-o": "o.tsv"}),
    "convert a folder": Command(("convert", "cohort"), {"-o": "o.tsv"}),
    "export": Command(("export", "r.h5"), {"-o": "o.tsv"}, behind=("t.tsv",)),
    "export parts": Command(("export", "v.h5", "--junctions", "t.tsv"), {"-o": "o.tsv"}, behind=("v.h5.parts",)),
    "report": Command(
        ("report", "r.h5", "e.tsv", *METADATA), {"-o": "o.html", "--figures": "figures"},
        behind=("e.tsv.json",),
    ),
    "report of a folder": Command(("report", "page"), {"-o": "o.html"}),
    "germline import": Command(("germline", "import", "s.json", "--anchors", "anchors.csv"), {"-o": "o.tsv"}),
    "motifs compare": Command(
        ("motifs", "compare", "s.fasta", "-k", "6", "-d", "1", *ON_CPU), {"-o": "o.h5"}, options=BOTH
    ),
    "motifs compare tables": Command(
        ("motifs", "compare", "y.tsv", "c.tsv", "-k", "6", "-d", "1", *ON_CPU), {"-o": "o.h5"}, options=BOTH
    ),
    "motifs export": Command(("motifs", "export", "m.h5"), {"-o": "o.graphml"}),
    "motifs cluster": Command(("motifs", "cluster", "m.h5", "--sequences", "s.fasta"), {"-o": "o.tsv"}),
    "motifs plot": Command(("motifs", "plot", "m.h5", "--clusters", "l.tsv"), {"-o": "o.svg"}),
    "models show": Command(("models", "show", "model"), {"-o": "o.svg"}),
    "models compare": Command(("models", "compare", "model", "model2", "--likelihood-of", "n.tsv"), {"-o": "o.tsv"}),
}  # fmt: skip

FOLDERS = {"folder", "clean", "figures", "out"}
"""Free names of outputs that are folders."""


def prepare(work: Path, names: Sequence[str]) -> None:
    """What the commands read; each must succeed."""
    mutate.prepare(work)
    with_copies(work / "y.tsv", work / "c.tsv")
    package = mutate.ROOT / "inputs"
    for name in ("model", "model2"):
        shutil.copytree(package / "models" / "human_trb_m15", work / name)
    shutil.copy(package / "germline" / "human_trb.tsv", work / "h.tsv")
    (work / "cohort").mkdir()
    for name in "yc":
        shutil.copy(work / f"{name}.tsv", work / "cohort" / f"{name}.tsv")
    (work / "aa.tsv").write_text("junction_aa\tv_call\tj_call\nCASSXF\tTRBV5-1\tTRBJ1-1\n")
    (work / "alphabet.txt").write_text("U: TGT, TGC\n")
    (work / "m.tsv").write_text("sample\tgroup\ny\ta\nc\tb\nt\ta\n")
    (work / "anchors.csv").write_text("allele,anchor_index\nTRBV1-1*01,309\n")
    (work / "page").mkdir()
    made(
        work,
        ("generate", *MODEL, "-n", "400", "-o", "n.tsv"),
        ("generate", *MODEL, "-n", "1200", "--productive", "-o", "many.tsv"),
        ("enrich", "y.tsv", *mutate.ENRICH[2:], *MODEL, "-o", "e.tsv"),
        ("enrich", "y.tsv", *mutate.ENRICH[2:], *MODEL, "-o", "page/e.tsv"),
        ("motifs", "cluster", "m.h5", "-o", "l.tsv"),
    )
    for command in map(COMMANDS.__getitem__, names):
        made(work, (*command.words, *(word for pair in command.outputs.items() for word in pair), "--overwrite"))
        for path in command.outputs.values():
            for left in work.glob(f"{path}*"):
                shutil.rmtree(left) if left.is_dir() else left.unlink()


Relation = Callable[[Path, Path, str, random.Random], str]
"""Of the folder, an input and the free name of an output: what to name as the output."""


def _alias(work: Path, name: str) -> Path:
    """A new name like the free one."""
    return work / f"alias_{name}"


def _symlink(work: Path, given: Path, name: str, chance: random.Random) -> str:
    alias = _alias(work, name)
    alias.symlink_to(chance.choice((given, given.relative_to(work))))
    return str(alias)


def _chain(work: Path, given: Path, name: str, chance: random.Random) -> str:
    (work / "between").symlink_to(given)
    return _symlink(work, work / "between", name, chance)


def _hard_link(work: Path, given: Path, name: str, chance: random.Random) -> str:
    if given.is_dir():
        return _symlink(work, given, name, chance)
    _alias(work, name).hardlink_to(given)
    return _alias(work, name).name


def _through_a_linked_folder(work: Path, given: Path, name: str, chance: random.Random) -> str:
    (work / "here").symlink_to(work)
    return f"here/{given.relative_to(work)}"


def _dots(work: Path, given: Path, name: str, chance: random.Random) -> str:
    return f"tables/../{given.relative_to(work)}"


def _linked_in_a_folder(work: Path, given: Path, name: str, chance: random.Random) -> str:
    """A folder for several results, in which all names that it could have lead to the input."""
    (work / "linked").mkdir()
    for own in ("a", "b", "y", "c"):
        for suffix in (".h5", ".tsv"):
            (work / "linked" / f"{own}{suffix}").symlink_to(given)
    return "linked"


SAME: dict[str, Relation] = {
    "the same": lambda work, given, name, chance: str(given.relative_to(work)),
    "absolute": lambda work, given, name, chance: str(given),
    "./": lambda work, given, name, chance: f".//{given.relative_to(work)}",
    "../": lambda work, given, name, chance: f"../{work.name}/{given.relative_to(work)}",
    "/../": _dots,
    "a slash at the end": lambda work, given, name, chance: f"{given.relative_to(work)}/",
    "a symbolic link": _symlink,
    "a link to a link": _chain,
    "a hard link": _hard_link,
    "through a linked folder": _through_a_linked_folder,
    "a folder of links": _linked_in_a_folder,
}
"""The output is the input."""


def _beside(suffix: str) -> Relation:
    def named(work: Path, given: Path, name: str, chance: random.Random) -> str:
        target = _alias(work, name)
        link = work / (suffix.format(target.name) if "{}" in suffix else target.name + suffix)
        if given.is_dir() or chance.random() < 0.5:
            link.symlink_to(given)
        else:
            link.hardlink_to(given)
        return str(target)

    return named


def _foreign(suffix: str, *, marked: bool = False) -> Relation:
    def named(work: Path, given: Path, name: str, chance: random.Random) -> str:
        target = _alias(work, name)
        folder = target.with_name(suffix.format(target.name))
        folder.mkdir()
        (folder / chance.choice(("thesis.txt", "part-000000.h5", "search.state", "inference.json"))).write_text("work")
        return str(target)

    return named


NEAR: dict[str, Relation] = {
    "in it": lambda work, given, name, chance: f"{given.relative_to(work)}/{name}",
    "its folder": lambda work, given, name, chance: str(given.parent.relative_to(work)),
    "the folder of all": lambda work, given, name, chance: str(work),
    **{f"{suffix} is it": _beside(suffix) for suffix in (
        ".json", ".h5", ".parts", ".checkpoint", ".h5.parts", ".h5.checkpoint", ".2.parts", ".{}.part", ".{}.lock",
        ".{}.probe", ".{}.old", ".{}.json.part", ".{}.h5.lock",
    )},
    **{f"files of others in {suffix}": _foreign(suffix) for suffix in (
        "{}", "{}.parts", "{}.checkpoint", ".{}.part", ".{}.old", "{}.h5.checkpoint", "{}.h5.parts",
    )},
}  # fmt: skip
"""What the command makes beside its output is, or has, the input, or files of others: nothing may change."""


def state(work: Path) -> dict[str, tuple[object, ...]]:
    """All that is in the folder: kinds, permissions, numbers, times and contents by name."""
    found: dict[str, tuple[object, ...]] = {}
    for path in work.rglob("*"):
        own = path.lstat()
        if path.name == mutate.LOG:
            continue
        known: tuple[object, ...] = (oct(own.st_mode), own.st_ino)
        if path.is_symlink():
            known += (str(path.readlink()),)
        elif stat.S_ISREG(own.st_mode):
            known += (own.st_nlink, own.st_mtime_ns, file_digest(path))
        found[str(path.relative_to(work))] = known
    return found


def run(case: Case, work: Path, chance: random.Random, names: Sequence[str]) -> None:
    """Draw a case, run it, and compare."""
    name = names[case.number % len(names)]
    command = COMMANDS[name]
    option = chance.choice(list(command.outputs))
    free = command.outputs[option]
    given = chance.choice(command.inputs(work))
    relations = SAME if chance.random() < 0.5 else NEAR
    how = chance.choice(list(relations))
    target = relations[how](work, given, free, chance)
    others = [word for own, path in command.outputs.items() if own == "-o" != option for word in (own, path)]
    flags = [flag for flag in command.options if chance.random() < 0.6]
    case.kind = f"{option} of {name}: {how}, {given.relative_to(work)}"
    before = state(work)
    lines = ended(case, (*command.words, option, target, *others, *flags), work)
    case.command = case.command.replace(str(work), "$PWD")
    if case.fault:
        return
    after = state(work)
    changed = [path for path, known in before.items() if after.get(path) != known]
    new = sorted(set(after) - set(before))
    errors = errors_of(lines)
    if changed:
        case.fault = f"changed: {' '.join(changed)}"
    elif case.exit_code == 0:
        if relations is SAME and must_refuse(command, free, given):
            case.fault = "not refused"
    elif len(errors) != 1 and not command.several:
        case.fault = "not one line"
    elif not any(Path(word).name in line for line in errors for word in (target, given)):
        case.fault = "the line does not name the file"
    elif new and not command.several:
        case.fault = f"left: {' '.join(new)}"


def must_refuse(command: Command, free: str, given: Path) -> bool:
    """Whether a command that has an input as output must be refused; results go into folders beside other files."""
    return not (given.is_dir() and command.several) and not (free == "figures" and given.is_dir())


if __name__ == "__main__":
    arguments = parsed(__doc__ or "", 300)
    arguments.add_argument("--commands", nargs="*", choices=list(COMMANDS), default=list(COMMANDS))
    given = arguments.parse_args()
    sys.exit(campaign(given, Case, partial(prepare, names=given.commands), partial(run, names=given.commands)))
