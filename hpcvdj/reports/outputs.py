"""The files of a report: what each is, what its samples are called, and their groups."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hpcvdj.chance.clone_sizes import CloneSizes
from hpcvdj.errors import InputError, few, option
from hpcvdj.repertoires.batches import in_threads
from hpcvdj.repertoires.inputs import RESULT_SUFFIXES
from hpcvdj.repertoires.metadata import listed_in
from hpcvdj.repertoires.readers import open_table, table_suffixes
from hpcvdj.repertoires.tables import repertoire_name
from hpcvdj.reports.elements import MOST_LISTED, printable
from hpcvdj.reports.survey import Survey, described, survey
from hpcvdj.results.facts import Facts, facts_path, read_facts, require_described
from hpcvdj.runs.ranks import usable_cores
from hpcvdj.storage.opening import damage

TIMES = "associate --time"
"""The command whose tables have what expanded in a person."""

FINDINGS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "contamination": {"individuals": list, "rate": list, "shared_low": list, "max_pgen": (int, float)},
    "sharing": {"individuals": list, "spectrum": list, "overlap": dict, "tested": int, "hits": int},
    "associate": {"individuals": list, "phenotypes": list, "sequences": int, "tested": int, "hits": int},
    TIMES: {"individuals": list, "noise": dict, "pairs": list, "settings": dict, "tested": int, "hits": int},
    "enrich": {"clonotypes": int, "tested": int, "hits": int, "clusters": int, "settings": dict, "tables": list},
    "annotate": {"sample": str, "found": int, "expected": (int, float), "epitopes_called": int, "hits_called": int,
                 "tested": int, "kappa": dict, "dispersion": (int, float), "settings": dict, "tables": list},
}  # fmt: skip
"""The commands whose tables have a .json beside them, and what these must have."""

HITS, EPITOPES = ".hits.tsv", ".epitopes.tsv"
"""How the names of the two tables of a sample of `annotate` end; the second has the .json beside it."""

ANALYSIS = "analysis.json"
"""What a folder of `analyze` has of its steps."""

SourceTable = tuple[str, str]
"""A table that a command read: the name of its file, and its SHA-256."""

DIFFERS = 1e-3
"""Below this p-value, κ differs between classes."""


def hits_text(found: int, expected: float, source: str) -> str:
    """How many hits chance makes, of those that there are.

    source  of κ: one that was fitted to all hits says nothing of their number
    """
    if source == "records":
        return f"{found:,} hits, to whose number κ is fitted"
    if expected > found:
        return f"{found:,} hits, where {expected:,.1f} are expected by chance"
    return f"{expected:,.1f} of {found:,} hits are expected by chance"


@dataclass(frozen=True)
class Finding:
    """A table of one of `FINDINGS`: the facts beside it, its first rows, and how many it has.

    sample  the individual of a table of `enrich` or `annotate`
    source  the table that was read, if it was one, of one sample
    hits    the first rows of the other table of `annotate`, and how many it has
    """

    path: Path
    command: str
    facts: Facts
    rows: list[dict[str, Any]]
    total: int
    sample: str = ""
    source: SourceTable | None = None
    hits: tuple[list[dict[str, Any]], int] = ([], 0)

    def reading(self) -> AbstractContextManager[None]:
        """Within the block, facts of another layout are an InputError that names the file."""
        return damage(facts_path(self.path))

    @property
    def individuals(self) -> list[dict[str, Any]]:
        """The individuals that were compared."""
        individuals: list[dict[str, Any]] = self.facts.get("individuals", [])
        return individuals

    @property
    def names(self) -> list[str]:
        """The individuals of the table."""
        return [self.sample] if self.sample else [individual["name"] for individual in self.individuals]


@dataclass(frozen=True)
class Outputs:
    """All that a page shows.

    groups       the group of each individual that has one
    individuals  the individual of each sample that is told apart by its file
    undone       what was asked for and not done, with the reason
    """

    surveys: list[Survey]
    findings: list[Finding]
    groups: dict[str, str] = field(default_factory=dict)
    individuals: dict[str, str] = field(default_factory=dict)
    undone: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> list[tuple[Path, str, Facts]]:
        """Each file, the command that wrote it, and what is known of it."""
        files = [(survey.path, survey.command, survey.facts) for survey in self.surveys]
        return files + [(finding.path, finding.command, finding.facts) for finding in self.findings]

    def of(self, command: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.command == command]

    @cached_property
    def clones(self) -> dict[str, CloneSizes]:
        """How many reads the clonotypes of each individual have, of those of whom a file says it: the first that does.

        One of `MISREAD` for facts of another layout.
        """
        clones: dict[str, CloneSizes] = {}
        for finding in self.findings:
            for name, sizes in dict(finding.facts.get("clones") or {}).items():
                clones.setdefault(finding.sample or printable(name), CloneSizes.from_recorded(sizes))
        return clones

    def individual(self, sample: str) -> str:
        return self.individuals.get(sample, sample)

    def group(self, sample: str) -> str | None:
        return self.groups.get(self.individual(sample))

    @property
    def names(self) -> list[str]:
        """Each individual once, whatever the number of its files."""
        samples = [self.individual(sample) for survey in self.surveys for sample in survey.samples]
        return list(
            dict.fromkeys([*samples, *(self.individual(name) for finding in self.findings for name in finding.names)])
        )


MOST_AT_ONCE = 4
"""Files that are read at the same time: each takes some hundred megabytes while it is read."""


def read_outputs(
    paths: Sequence[Path], names: Sequence[str] = (), metadata: Path | None = None, group: str | None = None
) -> Outputs:
    """Read the files of a report; of a folder, the results and tables in it.

    names     what the sample of each file is called
    metadata  the table that says of which group samples are, in its column `group`
    """
    paths = each_file(paths)
    if names and len(names) != len(paths):
        raise InputError(
            f"{len(names)} names for {len(paths)} files; give {option('name')} once for each, or not at all"
        )
    if (metadata is None) != (group is None):
        raise InputError(
            f"{option('metadata')} and {option('group')} belong together: a table, and its column that names the groups"
        )
    surveys, findings = list[Survey](), list[Finding]()
    for k, read in enumerate(in_threads(_read, paths, min(MOST_AT_ONCE, len(usable_cores())))):
        if isinstance(read, Finding):
            findings.append(replace(read, sample=names[k]) if names and read.sample else read)
            continue
        surveys.append(read)
        if names:
            several = len(surveys[-1].samples) > 1
            surveys[-1].samples = [f"{names[k]}, {sample}" if several else names[k] for sample in surveys[-1].samples]
    if not names:
        findings = _of_samples(surveys, findings)
    findings, individuals = _tell_apart(surveys, findings)
    outputs = Outputs(surveys, findings, {}, individuals)
    if metadata is not None and group is not None:
        return replace(outputs, groups=_groups(metadata, group, outputs.names))
    recorded = {
        individual["name"]: printable(str(individual["group"]))
        for finding in findings
        for individual in finding.individuals
        if individual.get("group")
    }
    return replace(outputs, groups=recorded)


def _read(path: Path) -> Finding | Survey:
    facts = described(path) if path.suffix != ".h5" else {}
    return _finding(path, facts) or survey(path, facts)


def _of_samples(surveys: list[Survey], findings: list[Finding]) -> list[Finding]:
    """Give the outputs of one table one name: that of its rows, which not all outputs tell, before that of its file.

    A table that `pgen` wrote is of the sample of the table that it read.  The names of surveys change in them.
    """
    alone = [(each, _source(each)) for each in surveys if len(each.samples) == 1]
    named = [(each.samples[0], source) for each, source in alone]
    named += [(finding.sample, finding.source) for finding in findings]
    of_rows = {source: name for name, source in named if source and name != repertoire_name(Path(source[0]))}
    made: dict[str, str] = {}
    for each, source in alone:
        each.samples = [of_rows.get(source, each.samples[0]) if source else each.samples[0]]
        made |= {digest: printable(each.samples[0]) for _, digest in each.facts.get("outputs", [])}

    def sample(finding: Finding) -> str:
        if finding.source is None:
            return finding.sample
        return made.get(finding.source[1]) or printable(of_rows.get(finding.source, finding.sample))

    return [replace(finding, sample=sample(finding)) for finding in findings]


def _source(survey: Survey) -> SourceTable | None:
    """The table, or the tables together, that `count` or `pgen` read, if that is known."""
    path, digest = (str(survey.facts.get(f"junctions_{key}") or "") for key in ("path", "sha256"))
    return (Path(path).name, digest) if digest else None


def each_file(paths: Sequence[Path]) -> list[Path]:
    """The files of a report; of folders, the results and tables in them; of samples of `annotate`, one table.

    Of the folder of an analysis, what its own report shows.
    """
    files = [file for path in paths for file in (_files_in(path) if path.is_dir() else [path])]
    return list(dict.fromkeys(_of_epitopes(file) for file in files))


def _of_epitopes(path: Path) -> Path:
    """The table of epitopes beside one of hits; other tables as they are."""
    epitopes = path.with_name(path.name.removesuffix(HITS) + EPITOPES)
    return epitopes if path.name.endswith(HITS) and epitopes.is_file() else path


def _files_in(folder: Path) -> list[Path]:
    """The results and tables in a folder, by name, without the further tables of a run; those of an analysis."""
    analysis = _analysis_in(folder)
    if analysis is not None:
        if not analysis.shown:
            raise InputError(f"{folder}: no step of this analysis has an output that a report shows")
        return [folder / name for name in analysis.shown]
    suffixes = (*RESULT_SUFFIXES, *table_suffixes())
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name.endswith(suffixes))
    if not files:
        raise InputError(f"{folder}: has no result or table ({', '.join(f'*{suffix}' for suffix in suffixes)})")
    further = {name for path in files for name in _further_tables(path)}
    return [path for path in files if path.name not in further or facts_path(path).is_file()]


def _further_tables(path: Path) -> list[str]:
    """The names of the tables that a run wrote beside this one, whose facts name them."""
    with damage(facts_path(path)):
        return [name for name, _ in (read_facts(path) or {}).get("outputs", [])[1:]]


@dataclass(frozen=True)
class _Analysis:
    """What a folder of `analyze` says of its steps.

    shown    the files that its own report shows, by name
    refused  the steps that the data did not allow, with the reason
    """

    shown: list[str]
    refused: dict[str, str]


def _analysis_in(folder: Path) -> _Analysis | None:
    """The analysis whose folder this is; None of another folder."""
    record = folder / ANALYSIS
    if not record.is_file():
        return None
    with damage(record):
        facts = json.loads(record.read_text(encoding="utf-8"))
        # Other programs may call a file so.
        if not isinstance(facts, dict) or facts.get("command") != "analyze":
            return None
        steps = facts["steps"]
        shown = [str(name) for step in steps for name in step["shown"]]
        return _Analysis(shown, {str(own["step"]): str(own["reason"]) for own in steps if own["state"] == "refused"})


def refused_steps(paths: Sequence[Path]) -> dict[str, str]:
    """The steps that the analyses among folders did not do as the data did not allow it, with the reasons."""
    analyses = [(path, own) for path in paths if path.is_dir() and (own := _analysis_in(path))]
    return {
        f"{path.name}, {step}" if len(analyses) > 1 else step: reason
        for path, own in analyses
        for step, reason in own.refused.items()
    }


def _finding(path: Path, facts: Facts) -> Finding | None:
    """What a table and the .json beside it say; None if it is another file."""
    with damage(facts_path(path)):
        command = facts.get("command") or ("enrich" if "kappa_by_length" in facts else "")
        if command not in FINDINGS:
            return None
        for key, kind in FINDINGS[command].items():
            if not isinstance(facts[key], kind):
                raise ValueError(f"its {key} is {facts[key]!r}")
        for individual in facts.get("individuals", []):
            individual["name"] = printable(str(individual["name"]))
        sample, names = "", list(dict(facts.get("clones") or {}))
        if command == "enrich":
            of_file = repertoire_name(Path(facts["tables"][0][0])) if facts.get("tables") else path.name
            sample = printable(names[0] if len(names) == 1 else of_file)
        elif command == "annotate":
            sample, names = printable(facts["sample"]), list(facts.get("samples", names))
        source = None
        if sample and len(names) <= 1 and len(facts["tables"]) == 1 and facts["tables"][0][1]:
            source = Path(facts["tables"][0][0]).name, str(facts["tables"][0][1])
    # A table without rows may lack its header.
    rows, total = _first_rows(path) if facts.get("tested") != 0 else ([], 0)
    of_hits: tuple[list[dict[str, Any]], int] = ([], 0)
    if command == "annotate":
        hits = path.with_name(path.name.removesuffix(EPITOPES) + HITS)
        require_described(path, facts, [hits])
        of_hits = _first_rows(hits) if facts["found"] else of_hits
    return Finding(path, command, facts, rows, total, sample, source, of_hits)


def _first_rows(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The rows of a table that a page lists, and how many it has."""
    rows, total = list[dict[str, Any]](), 0
    for batch in open_table(path).batches():
        total += batch.num_rows
        rows += [_typed(row) for row in batch.slice(0, max(0, MOST_LISTED - len(rows))).to_pylist()]
    return rows, total


_TEXTS = frozenset((
    "v_call", "j_call", "junction", "junction_aa", "individuals", "individual_1", "individual_2", "verdict",
    "likely_copy", "not_tested", "epitope", "antigen", "organism", "mhc", "record", "reference", "decoy", "phenotype",
    "cdr3_aa", "subject",
))  # fmt: skip


def _typed(row: dict[str, Any]) -> dict[str, Any]:
    """The texts of a row as the numbers that they are."""
    return {name: value if name in _TEXTS else _number(value) for name, value in row.items()}


def _number(text: Any) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except (TypeError, ValueError):
            continue
    return None


def _tell_apart(surveys: list[Survey], findings: list[Finding]) -> tuple[list[Finding], dict[str, str]]:
    """Give equal samples of several files of one command the names of their files; the sample of each new name.

    The names of surveys change in them.
    """
    originals: dict[str, str] = {}

    def apart(samples: list[list[str]], paths: list[Path]) -> list[list[str]]:
        files = defaultdict[str, list[Path]](list)
        for own, path in zip(samples, paths, strict=True):
            for name in own:
                files[name].append(path)
        labels = {name: iter(_labels(own)) for name, own in files.items() if len(own) > 1}
        named = [[f"{name} ({next(labels[name])})" if name in labels else name for name in own] for own in samples]
        for own, new in zip(samples, named, strict=True):
            originals.update(zip(map(printable, new), map(printable, own), strict=True))
        return [list(map(printable, own)) for own in named]

    for command in {each.command for each in surveys}:
        alike = [each for each in surveys if each.command == command]
        named = apart([each.samples for each in alike], [each.path for each in alike])
        for each, names in zip(alike, named, strict=True):
            each.samples = names
    told = list(findings)
    for command in {each.command for each in findings}:
        places = [k for k, each in enumerate(findings) if each.command == command and each.sample]
        named = apart([[findings[k].sample] for k in places], [findings[k].path for k in places])
        for k, (name,) in zip(places, named, strict=True):
            told[k] = replace(findings[k], sample=name)
    return told, originals


def _labels(paths: Sequence[Path]) -> list[str]:
    """Names that tell files apart: their own, those of their folders, both, or their numbers."""
    folders = [path.absolute().parent.name for path in paths]
    names = [path.name for path in paths]
    both = [f"{folder}/{name}" for folder, name in zip(folders, names, strict=True)]
    numbered = [f"{name}, file {k + 1}" for k, name in enumerate(names)]
    return next(labels for labels in (names, folders, both, numbered) if len({*labels}) == len(labels))


def _groups(metadata: Path, group: str, samples: list[str]) -> dict[str, str]:
    """The group of each sample that a table lists."""
    groups = listed_in(metadata, group, samples)
    if not groups:
        raise InputError(f"{metadata}: no column names the samples ({few(samples)}); add one that does")
    return {sample: printable(name) for sample, name in groups.items()}
