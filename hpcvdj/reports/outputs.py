"""What the files of a report are, the names of their samples, and the groups of these."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hpcvdj.errors import InputError, few, log, option
from hpcvdj.repertoires.metadata import listed_in
from hpcvdj.repertoires.readers import open_table
from hpcvdj.repertoires.table import repertoire_name
from hpcvdj.reports.clonotypes import ListedClonotypes, clonotypes_of
from hpcvdj.reports.elements import MOST_LISTED, kind_of, printable
from hpcvdj.reports.files import EPITOPES, HITS, NotDone, each_file
from hpcvdj.reports.survey import Survey, described, loci_of, name_read
from hpcvdj.reports.survey import survey as read_survey
from hpcvdj.results.facts import Facts, facts_path, require_described
from hpcvdj.runs.partition import evenly
from hpcvdj.runs.ranks import limit_arrow, starting, usable_cores
from hpcvdj.runs.run import Run
from hpcvdj.storage.ahead import in_threads
from hpcvdj.storage.damage import damage

TIMES = "associate --time"
"""The command whose tables list the clonotypes that expanded in a person."""

FINDINGS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "contamination": {"individuals": list, "rate": list, "shared_low": list, "max_pgen": (int, float)},
    "sharing": {"individuals": list, "spectrum": list, "overlap": dict, "tested": int, "hits": int},
    "associate": {"individuals": list, "phenotypes": list, "sequences": int, "tested": int, "hits": int},
    TIMES: {"individuals": list, "noise": dict, "pairs": list, "settings": dict, "tested": int, "hits": int},
    "enrich": {"clonotypes": int, "tested": int, "hits": int, "clusters": int, "settings": dict, "tables": list},
    "annotate": {"sample": str, "found": int, "expected": (int, float), "epitopes_called": int, "hits_called": int,
                 "tested": int, "kappa": dict, "dispersion": (int, float), "settings": dict, "tables": list},
}  # fmt: skip
"""The commands whose tables have facts, a .json, beside them, and the facts that each must have."""

SourceTable = tuple[str, str]
"""A table that a command read: its name and its SHA-256."""

FirstRows = tuple[list[dict[str, Any]], int]
"""The rows of a table that a page lists, and the number of all rows."""

DIFFERS = 1e-3
"""κ differs between classes if the p-value is below this."""


NO_KAPPA = {
    "none": "too few hits to estimate kappa, so nothing is called",
    "bound": "hits are 1,000 times as common as chance makes them, or more, so nothing is called: is the sample the "
             "database, or sorted by what it binds?",
}  # fmt: skip
"""The sources of κ without which nobody knows what chance makes, and what to say of them."""


def hits_text(hits: int, expected: float, source: str) -> str:
    """Say how many of the hits are expected by chance.

    source  where κ comes from: a κ that was fitted to all hits says nothing about their number
    """
    if source == "records":
        return f"{hits:,} hits, to whose number κ is fitted"
    if expected > hits:
        return f"{hits:,} hits, where {expected:,.1f} are expected by chance"
    return f"{expected:,.1f} of {hits:,} hits are expected by chance"


@dataclass(frozen=True)
class Finding:
    """A table of one of `FINDINGS`.

    facts   the facts beside it
    rows    the rows that a page lists
    total   the number of all rows
    sample  the individual of a table of `enrich` or `annotate`
    source  the table that the command read, if it was one, of one sample
    hits    the rows of the other table of `annotate`
    """

    path: Path
    command: str
    facts: Facts
    rows: list[dict[str, Any]]
    total: int
    sample: str = ""
    source: SourceTable | None = None
    hits: FirstRows = ([], 0)

    @property
    def individuals(self) -> list[dict[str, Any]]:
        """The individuals that were compared."""
        return list(self.facts.get("individuals", []))

    @property
    def loci(self) -> frozenset[str]:
        """The locus of the model, or of the genes in `rows` if the facts do not name it; empty if nothing tells it."""
        if locus := self.facts.get("locus"):
            return frozenset([str(locus)])
        return loci_of(*([str(row.get(call) or "") for row in self.rows] for call in ("j_call", "v_call")))

    @property
    def names(self) -> list[str]:
        """The individuals of the table."""
        return [self.sample] if self.sample else [individual["name"] for individual in self.individuals]


@dataclass(frozen=True)
class Outputs:
    """All that a page shows.

    groups       the group of each individual that has one
    individuals  the individual of each sample whose name on the page includes a locus, or the name of its file
    of_loci      the individuals with files of several loci
    clonotypes   of the files of a command with the same `Survey.listed`
    not_done     the steps of analyses that were not done
    """

    surveys: list[Survey]
    findings: list[Finding]
    groups: dict[str, str] = field(default_factory=dict)
    individuals: dict[str, str] = field(default_factory=dict)
    of_loci: frozenset[str] = frozenset()
    clonotypes: dict[tuple[str, str], ListedClonotypes] = field(default_factory=dict)
    not_done: NotDone = field(default_factory=dict)

    @property
    def files(self) -> list[tuple[Path, str, Facts]]:
        """Each file, the command that wrote it, and its facts."""
        files = [(survey.path, survey.command, survey.facts) for survey in self.surveys]
        return files + [(finding.path, finding.command, finding.facts) for finding in self.findings]

    def of(self, command: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.command == command]

    @cached_property
    def labels(self) -> dict[Path, str]:
        """What the page calls each file: its name, with that of its folder or its number if others have the name."""
        of_name = defaultdict[str, list[Path]](list)
        for path, *_ in self.files:
            of_name[path.name].append(path)
        return {path: label for paths in of_name.values()
                for path, label in zip(paths, _labels(paths, folders=False), strict=True)}  # fmt: skip

    @cached_property
    def loci(self) -> dict[Path, frozenset[str]]:
        """The loci of each file; empty if they are not known."""
        surveyed = {own.path: frozenset[str]().union(*map(own.loci, range(len(own.samples)))) for own in self.surveys}
        return surveyed | {finding.path: finding.loci for finding in self.findings}

    @cached_property
    def models(self) -> dict[Path, str]:
        """The name of the model of each file that has one; its digest follows if another model has the name.

        Models are the same if their digests, and those of their selection factors, are.
        """
        named = [(path, str(facts["model"]), _digests(facts)) for path, _, facts in self.files if facts.get("model")]
        of_name = {name: digests for _, name, digests in reversed(named) if digests}
        keys = {path: digests or of_name.get(name, name) for path, name, digests in named}
        names = {keys[path]: name for path, name, _ in reversed(named)}
        often = Counter(names.values())
        return {path: names[key] if often[names[key]] == 1 else f"{names[key]} {key}" for path, key in keys.items()}

    def with_loci(self, individual: str, loci: frozenset[str]) -> str:
        """The name of an individual; it includes the loci if there are files of others, too."""
        return f"{individual} ({spelled(loci)})" if loci and individual in self.of_loci else individual

    def individual(self, sample: str) -> str:
        return self.individuals.get(sample, sample)

    def group(self, sample: str) -> str | None:
        return self.groups.get(self.individual(sample))

    @property
    def names(self) -> list[str]:
        """Each individual once, whatever the number of its files."""
        names = [name for survey in self.surveys for name in survey.samples]
        names += [name for finding in self.findings for name in finding.names]
        return list(dict.fromkeys(map(self.individual, names)))


def _digests(facts: Facts) -> str:
    """The first digits of the SHA-256 of a model and of its selection factor; empty if they are not known."""
    return " ".join(str(facts[key])[:12] for key in ("model_sha256", "selection_sha256") if facts.get(key))


def spelled(loci: frozenset[str]) -> str:
    return ", ".join(sorted(loci))


MOST_AT_ONCE = 4
"""How many files are read at the same time: each takes a few hundred megabytes of memory."""


def read_outputs(
    paths: Sequence[Path], names: Sequence[str] = (), metadata: Path | None = None, group: str | None = None,
    run: Run | None = None,
) -> Outputs | None:  # fmt: skip
    """Read the files of a report on all ranks; return what they have on root, None on the other ranks.

    A folder stands for the results and tables in it.

    names     the name of the sample of each file
    metadata  the table that has the groups of samples, in its column `group`

    InputError, on every rank, that names the first file that is not an output of hpcvdj, or damaged.
    """
    run = run or Run()

    def begin() -> tuple[list[Path], list[list[int]]]:
        files = each_file(paths)
        if names and len(names) != len(files):
            raise InputError(
                f"{len(names)} names for {len(files)} files; give {option('name')} once for each, or not at all"
            )
        if (metadata is None) != (group is None):
            raise InputError(
                f"{option('metadata')} and {option('group')} belong together: a table, and its column that names the "
                "groups"
            )
        return files, evenly([file.stat().st_size if file.exists() else 0 for file in files], run.ranks)

    files, shares = run.from_root(begin)
    limit_arrow()
    share, threads = sorted(shares[run.rank]), min(MOST_AT_ONCE, starting.threads or len(usable_cores()))
    read = dict(zip(share, in_threads(_read, [files[k] for k in share], threads), strict=True))
    # The rows of clonotypes stay on the rank that read them.
    clonotypes = {}
    for output in read.values():
        if isinstance(output, Survey) and output.clonotypes is not None:
            clonotypes[output.path], output.clonotypes = output.clonotypes, None
    gathered = run.gather(read)

    def named() -> Outputs:
        every = {k: output for of_rank in gathered or [] for k, output in of_rank.items()}
        return _named([every[k] for k in range(len(files))], names, metadata, group)

    outputs = run.on_root(named)
    found = clonotypes_of(outputs.surveys if outputs is not None else None, clonotypes, run)
    return None if outputs is None else replace(outputs, clonotypes=found)


def _read(path: Path) -> Finding | Survey | InputError:
    """Read a file; return the error if it cannot be read: the other ranks wait for this one."""
    try:
        facts = described(path) if path.suffix != ".h5" else {}
        return _finding(path, facts) or read_survey(path, facts)
    except InputError as error:
        return error


def _named(
    read: list[Finding | Survey | InputError], names: Sequence[str], metadata: Path | None, group: str | None
) -> Outputs:
    """What was read of all files, with the names and groups of samples; raise the first error among it."""
    surveys, findings = list[Survey](), list[Finding]()
    for k, output in enumerate(read):
        if isinstance(output, InputError):
            raise output
        if isinstance(output, Finding):
            findings.append(replace(output, sample=names[k]) if names and output.sample else output)
            continue
        surveys.append(output)
        if names:
            several = len(output.samples) > 1
            output.samples = [f"{names[k]}, {sample}" if several else names[k] for sample in output.samples]
    if not names:
        findings = _of_samples(surveys, findings)
    outputs = _tell_apart(surveys, findings)
    if metadata is not None and group is not None:
        groups = listed_in(metadata, group, outputs.names)
        if not groups:
            raise InputError(f"{metadata}: no column names the samples ({few(outputs.names)}); add one that does")
    else:
        compared = [individual for finding in findings for individual in finding.individuals]
        recorded = {(own["name"], str(own["group"])) for own in compared if own.get("group")}
        groups = dict(recorded)
        if len(groups) < len(recorded):
            log.warning("files have samples in groups of different columns, so the page has none; %s and %s say which",
                        option("metadata"), option("group"))  # fmt: skip
            groups = {}
    return replace(outputs, groups={name: printable(text) for name, text in groups.items()})


def _of_samples(surveys: list[Survey], findings: list[Finding]) -> list[Finding]:
    """Give all outputs of one table the same name: the name in its rows if an output has it, else that of its file.

    A table that `pgen` wrote has the sample of the table that `pgen` read.  The names of surveys change in place.
    """
    alone = [(survey, _source(survey)) for survey in surveys if len(survey.samples) == 1]
    named = [(survey.samples[0], source) for survey, source in alone]
    named += [(finding.sample, finding.source) for finding in findings]
    of_rows = {source: name for name, source in named if source and name != source[0]}
    of_digest: dict[str, str] = {}
    for survey, source in alone:
        survey.samples = [of_rows.get(source, survey.samples[0]) if source else survey.samples[0]]
        of_digest |= {digest: printable(survey.samples[0]) for _, digest in survey.facts.get("outputs", [])}

    def sample(finding: Finding) -> str:
        if finding.source is None:
            return finding.sample
        return of_digest.get(finding.source[1]) or printable(of_rows.get(finding.source, finding.sample))

    return [replace(finding, sample=sample(finding)) for finding in findings]


def _source(survey: Survey) -> SourceTable | None:
    """The table that `count` or `pgen` read, or the tables that it read together; None if that is not known."""
    digest = str(survey.facts.get("junctions_sha256") or "")
    return (name_read(survey.facts, survey.path), digest) if digest else None


def tables_read(facts: Facts) -> dict[str, str]:
    """The names of the tables that a command read, by what tells them apart; empty if the facts do not say it."""
    tables = facts.get("tables") or [(facts.get("junctions_path"), facts.get("junctions_sha256"))]
    return {str(digest or path): printable(Path(path).name) for path, digest, *_ in tables if path}


def _finding(path: Path, facts: Facts) -> Finding | None:
    """Read a table of `FINDINGS` and the facts beside it; None for another file."""
    with damage(facts_path(path)):
        command = facts.get("command") or ("enrich" if "kappa_by_length" in facts else "")
        if command not in FINDINGS:
            return None
        for key, kind in FINDINGS[command].items():
            if not isinstance(facts[key], kind):
                raise ValueError(f"its {key} is {facts[key]!r}")
        for individual in facts.get("individuals", []):
            individual["name"] = printable(str(individual["name"]))
        sample, names, read = "", list(dict(facts.get("clones") or {})), (path.name, "")
        if command in ("enrich", "annotate") and facts["tables"]:
            file, digest, *more = facts["tables"][0]
            # Older versions record no name of the table.
            read = str((more[1:] or [repertoire_name(Path(file))])[0]), str(digest or "")
        if command == "enrich":
            sample = printable(names[0] if len(names) == 1 else read[0])
        elif command == "annotate":
            sample, names = printable(facts["sample"]), list(facts.get("samples", names))
        alone = sample and len(names) <= 1 and len(facts["tables"]) == 1 and read[1]
    # A table without rows may lack its header.
    rows, total = _first_rows(path) if facts.get("tested") != 0 else ([], 0)
    hits: FirstRows = ([], 0)
    if command == "annotate":
        beside = path.with_name(path.name.removesuffix(EPITOPES) + HITS)
        require_described(path, facts, [beside])
        hits = _first_rows(beside) if facts["found"] else hits
    return Finding(path, command, facts, rows, total, sample, read if alone else None, hits)


def _first_rows(path: Path) -> FirstRows:
    rows, total = list[dict[str, Any]](), 0
    for batch in open_table(path).batches():
        total += batch.num_rows
        for row in batch.slice(0, max(0, MOST_LISTED - len(rows))).to_pylist():
            rows.append({name: _number(value) if kind_of(name) == "number" else value for name, value in row.items()})
    return rows, total


def _number(text: Any) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except (TypeError, ValueError):
            continue
    return None


def _tell_apart(surveys: list[Survey], findings: list[Finding]) -> Outputs:
    """Add loci to the names of individuals with files of several, and names of files to samples that are still alike.

    Samples of different commands may be alike.  The names of surveys change in place.
    """
    loci = defaultdict[str, set[frozenset[str]]](set)
    for survey in surveys:
        survey.samples = [printable(sample) for sample in survey.samples]
        for k, sample in enumerate(survey.samples):
            loci[sample].add(survey.loci(k))
    for finding in findings:
        for name in finding.names:
            loci[name].add(finding.loci)
    of_loci = frozenset(name for name, known in loci.items() if len(known - {frozenset()}) > 1)
    outputs = Outputs(surveys, findings, of_loci=of_loci)
    samples = [
        (survey.command, outputs.with_loci(sample, survey.loci(k)), survey.path)
        for survey in surveys for k, sample in enumerate(survey.samples)
    ]  # fmt: skip
    samples += [(each.command, outputs.with_loci(each.sample, each.loci), each.path) for each in findings]
    files = defaultdict[tuple[str, str], list[Path]](list)
    for command, name, path in samples:
        files[command, name].append(path)
    labels = {key: iter(_labels(paths)) for key, paths in files.items() if len(paths) > 1}
    individuals: dict[str, str] = {}

    def apart(command: str, sample: str, loci: frozenset[str]) -> str:
        name = outputs.with_loci(sample, loci)
        if (command, name) in labels:
            name = f"{name} ({next(labels[command, name])})"
        individuals[name] = sample
        return name

    for survey in surveys:
        survey.samples = [apart(survey.command, sample, survey.loci(k)) for k, sample in enumerate(survey.samples)]
    named = [
        replace(finding, sample=finding.sample and apart(finding.command, finding.sample, finding.loci))
        for finding in findings
    ]
    return replace(outputs, findings=named, individuals=individuals)


def _labels(paths: Sequence[Path], *, folders: bool = True) -> list[str]:
    """Names that tell files apart: those of the files, with their folders if necessary, or with numbers.

    folders  the names of folders alone may tell files apart, too
    """
    parts = [path.absolute().parts for path in paths]
    ways = [["/".join(own[-depth:]) for own in parts] for depth in range(1, max(map(len, parts)) + 1)]
    if folders:
        ways.insert(1, [own[-2] for own in parts])
    ways.append([f"{path.name}, file {k + 1}" for k, path in enumerate(paths)])
    return next(labels for labels in ways if len({*labels}) == len(labels))
