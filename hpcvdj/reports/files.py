"""Which files a report shows: those that users name, and those in folders."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hpcvdj.errors import InputError
from hpcvdj.repertoires.inputs import RESULT_SUFFIXES
from hpcvdj.repertoires.readers import table_suffixes
from hpcvdj.results.facts import facts_path, read_facts
from hpcvdj.storage.damage import damage

HITS, EPITOPES = ".hits.tsv", ".epitopes.tsv"
"""The ends of the names of the two tables of a sample of `annotate`; the second has facts beside it."""

ANALYSIS = "analysis.json"
"""The record of the steps in a folder of `analyze`."""

NOT_ASKED = "not asked for"
"""The reason of steps of an analysis that nobody wanted."""

LEFT_OUT = "left out"
"""The state of steps that the tables do not allow, or that were not asked for."""

NotDone = dict[str, tuple[bool, str]]
"""Steps of an analysis that were not done, by name: whether the tables do not allow the step, or else it was asked for;
and the reason."""


def each_file(paths: Sequence[Path]) -> list[Path]:
    """The files of a report, each once.

    A folder stands for the results and tables in it, the folder of an analysis for what its own report shows, and
    either table of a sample of `annotate` for its table of epitopes.
    """
    files = [file for path in paths for file in (_files_in(path) if path.is_dir() else [path])]
    return list(dict.fromkeys(_of_epitopes(file) for file in files))


def _of_epitopes(path: Path) -> Path:
    """The table of epitopes beside a table of hits; any other table itself."""
    epitopes = path.with_name(path.name.removesuffix(HITS) + EPITOPES)
    return epitopes if path.name.endswith(HITS) and epitopes.is_file() else path


def _files_in(folder: Path) -> list[Path]:
    """The files that the report of an analysis shows; of another folder, the results and tables, by name.

    The further tables of a run are left out.
    """
    if analysis := _analysis_in(folder):
        shown, _ = analysis
        if not shown:
            raise InputError(f"{folder}: no step of this analysis has an output that a report shows")
        return [folder / name for name in shown]
    suffixes = (*RESULT_SUFFIXES, *table_suffixes())
    # macOS puts hidden files beside others.
    files = sorted(path for path in folder.iterdir()
                   if path.is_file() and path.name.endswith(suffixes) and not path.name.startswith("."))  # fmt: skip
    if not files:
        raise InputError(f"{folder}: has no result or table ({', '.join(f'*{suffix}' for suffix in suffixes)})")
    further: set[str] = set()
    for path in files:
        with damage(facts_path(path)):
            further |= {name for name, _ in (read_facts(path) or {}).get("outputs", [])[1:]}
    return [path for path in files if path.name not in further or facts_path(path).is_file()]


def _analysis_in(folder: Path) -> tuple[list[str], NotDone] | None:
    """What `shown_and_not_done` returns for the analysis in a folder; None for a folder of something else."""
    record = folder / ANALYSIS
    if not record.is_file():
        return None
    with damage(record):
        facts = json.loads(record.read_text(encoding="utf-8"))
        # Other programs may write a file of this name.
        if not isinstance(facts, dict) or facts.get("command") != "analyze":
            return None
        return shown_and_not_done(facts["steps"])


def shown_and_not_done(steps: Sequence[Mapping[str, Any]]) -> tuple[list[str], NotDone]:
    """The names of the files of an analysis that a report shows, and the steps that were not done.

    steps  the outcomes of the steps
    """
    shown = [str(name) for step in steps for name in step["shown"]]
    not_done = {str(step["step"]): (step["state"] == LEFT_OUT, str(step["reason"])) for step in steps}
    return shown, {step: why for step, why in not_done.items() if why[1] not in ("", NOT_ASKED)}


def steps_not_done(paths: Sequence[Path]) -> NotDone:
    """The steps that were not done, of the analyses among the folders of `paths`."""
    analyses = [(path, analysis) for path in paths if path.is_dir() and (analysis := _analysis_in(path))]
    return {
        f"{path.name}, {step}" if len(analyses) > 1 else step: why
        for path, (_, not_done) in analyses
        for step, why in not_done.items()
    }
