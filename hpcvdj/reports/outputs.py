"""The files of a report: what each is, what its samples are called, and their groups."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcvdj.errors import InputError, few, option
from hpcvdj.repertoires.inputs import RESULT_SUFFIXES
from hpcvdj.repertoires.metadata import listed_in
from hpcvdj.repertoires.readers import open_table, table_suffixes
from hpcvdj.repertoires.tables import repertoire_name
from hpcvdj.reports.elements import MOST_LISTED, printable
from hpcvdj.reports.survey import Survey, survey
from hpcvdj.results.facts import facts_path, read_facts, require_described
from hpcvdj.storage.opening import damage

FINDINGS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "contamination": {"individuals": list, "rate": list, "shared_low": list, "max_pgen": (int, float)},
    "sharing": {"individuals": list, "spectrum": list, "overlap": dict, "tested": int, "hits": int},
    "enrich": {"clonotypes": int, "tested": int, "hits": int, "clusters": int, "settings": dict, "tables": list},
}
"""The commands whose tables have a .json beside them, and what these must have."""


@dataclass(frozen=True)
class Finding:
    """A table of one of `FINDINGS`: the facts beside it, its first rows, and how many it has.

    sample  the individual of a table of `enrich`
    """

    path: Path
    command: str
    facts: dict[str, Any]
    rows: list[dict[str, Any]]
    total: int
    sample: str = ""

    def reading(self) -> AbstractContextManager[None]:
        """Within the block, facts of another layout are an InputError that names the file."""
        return damage(facts_path(self.path))

    @property
    def individuals(self) -> list[dict[str, Any]]:
        """The individuals that were compared."""
        found: list[dict[str, Any]] = self.facts.get("individuals", [])
        return found


@dataclass(frozen=True)
class Outputs:
    """All that a page shows.  `groups` has the group of each sample that has one."""

    surveys: list[Survey]
    findings: list[Finding]
    groups: dict[str, str] = field(default_factory=dict)

    def of(self, command: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.command == command]

    def group(self, sample: str) -> str | None:
        return self.groups.get(sample)


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
    for k, path in enumerate(paths):
        finding = _finding(path)
        if finding is not None:
            findings.append(Finding(**{**vars(finding), "sample": names[k]}) if names and finding.sample else finding)
            continue
        surveys.append(survey(path))
        if names:
            several = len(surveys[-1].samples) > 1
            surveys[-1].samples = [f"{names[k]}, {own}" if several else names[k] for own in surveys[-1].samples]
    _tell_apart(surveys)
    found = [sample for each in surveys for sample in each.samples] + [each.sample for each in findings if each.sample]
    groups = {}
    for finding in findings:
        for individual in finding.individuals:
            found.append(individual["name"])
            if individual.get("group"):
                groups[individual["name"]] = printable(str(individual["group"]))
    if metadata is not None and group is not None:
        groups = _groups(metadata, group, list(dict.fromkeys(found)))
    return Outputs(surveys, findings, groups)


def each_file(paths: Sequence[Path]) -> list[Path]:
    """The files of a report; of folders, the results and tables in them."""
    return [file for path in paths for file in (_files_in(path) if path.is_dir() else [path])]


def _files_in(folder: Path) -> list[Path]:
    """The results and tables in a folder, by name."""
    suffixes = (*RESULT_SUFFIXES, *table_suffixes())
    found = sorted(path for path in folder.iterdir() if path.is_file() and path.name.endswith(suffixes))
    if not found:
        raise InputError(f"{folder}: has no result or table ({', '.join(f'*{suffix}' for suffix in suffixes)})")
    return found


def _finding(path: Path) -> Finding | None:
    """What a table and the .json beside it say; None if it is another file."""
    facts = read_facts(path) if path.suffix != ".h5" else None
    if facts is None:
        return None
    require_described(path, facts)
    with damage(facts_path(path)):
        command = facts.get("command") or ("enrich" if "kappa_by_length" in facts else "")
        if command not in FINDINGS:
            return None
        for key, kind in FINDINGS[command].items():
            if not isinstance(facts[key], kind):
                raise ValueError(f"its {key} is {facts[key]!r}")
        for own in facts.get("individuals", []):
            own["name"] = printable(str(own["name"]))
        sample = repertoire_name(Path(facts["tables"][0][0])) if command == "enrich" and facts.get("tables") else ""
    rows, total = list[dict[str, Any]](), 0
    # A table without rows may lack its header.
    for batch in open_table(path).batches() if facts.get("tested") != 0 else ():
        total += batch.num_rows
        rows += [_typed(row) for row in batch.slice(0, max(0, MOST_LISTED - len(rows))).to_pylist()]
    return Finding(path, command, facts, rows, total, printable(sample or path.name) if command == "enrich" else "")


_TEXTS = frozenset((
    "v_call", "j_call", "junction", "junction_aa", "individuals", "individual_1", "individual_2", "verdict",
    "likely_copy", "not_tested",
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


def _tell_apart(surveys: list[Survey]) -> None:
    """Give equal samples of several files of one command the names of their files."""
    for command in {each.command for each in surveys}:
        own = [each for each in surveys if each.command == command]
        names = [sample for each in own for sample in each.samples]
        twice = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
        paths = [each.path.name for each in own]
        for k, each in enumerate(own):
            label = each.path.name if paths.count(each.path.name) == 1 else f"{each.path.name}, file {k + 1}"
            each.samples = [f"{name} ({label})" if name in twice else name for name in each.samples]
    for each in surveys:
        each.samples = list(map(printable, each.samples))


def _groups(metadata: Path, group: str, samples: list[str]) -> dict[str, str]:
    """The group of each sample that a table lists."""
    found = listed_in(metadata, group, samples)
    if not found:
        raise InputError(f"{metadata}: no column names the samples ({few(samples)}); add one that does")
    return {sample: printable(own) for sample, own in found.items()}
