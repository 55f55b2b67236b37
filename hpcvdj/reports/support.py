"""The first section: what the data support, and the last: where the files come from."""

from collections.abc import Iterator

from hpcvdj.reports.elements import Section, Statement, Table, Verdict, percent, shown
from hpcvdj.reports.findings import pairs_standing_out
from hpcvdj.reports.fits import fit_statements
from hpcvdj.reports.outputs import Finding, Outputs

MOST_LEFT_OUT = 0.2
"""Above this share of rows left out, results are to be taken with care."""


def support(outputs: Outputs) -> Section:
    """What can be concluded, question by question; statements of several files with the same verdict are one."""
    statements = _rows, _models, fit_statements, _contamination, _sharing, _enrichment
    answers: dict[tuple[str, Verdict], list[str]] = {}
    for statement in (statement for ask in statements for statement in ask(outputs)):
        answers.setdefault((statement.question, statement.verdict), []).append(statement.answer)
    words = ["Read this first. Each line says whether the data support a conclusion, and what speaks against it."]
    merged = [Statement(*asked, " ".join(dict.fromkeys(given))) for asked, given in answers.items()]
    return Section("support", "What the data support", words, statements=merged)


def _rows(outputs: Outputs) -> Iterator[Statement]:
    numbers: dict[str, tuple[int, int]] = {}

    def add(command: str, used: int, left_out: int) -> None:
        before = numbers.get(command, (0, 0))
        numbers[command] = before[0] + used, before[1] + left_out

    for survey in outputs.surveys:
        add(survey.command, int(survey.counted.sum()), sum(rows for _, rows, *_ in survey.excluded))
    for finding in outputs.of("sharing"):
        for each in finding.individuals:
            add("sharing", each["rows"], sum(each.get("left_out", {}).values()))
    for finding in outputs.of("enrich"):
        excluded = [entry[-1] for entry in finding.facts.get("rows_excluded", [])]
        left_out = sum(rows for rows in excluded if isinstance(rows, int))
        left_out += sum(finding.facts.get("rows_left_out", {}).values())
        add("enrich", finding.facts.get("rows_read", 0) - left_out, left_out)
    if numbers:
        worst = max(left_out / max(1, used + left_out) for used, left_out in numbers.values())
        texts = [
            f"{command}: {used:,} rows used, {left_out:,} left out ({percent(left_out, used + left_out)})"
            for command, (used, left_out) in numbers.items()
        ]
        verdict: Verdict = "with care" if worst > MOST_LEFT_OUT else "yes"
        if not any(used for used, _ in numbers.values()):
            verdict = "no"
        yield Statement("Were most rows used?", verdict, "; ".join(texts) + ". The reasons are below.")


def _models(outputs: Outputs) -> Iterator[Statement]:
    facts = [facts for _, command, facts in outputs.files if command != "count"]
    models = dict.fromkeys(str(each["model"]) for each in facts if each.get("model"))
    digests = {str(each["model_sha256"]) for each in facts if each.get("model_sha256")}
    unknown = sum(not each.get("model") for each in facts)
    if facts:
        several = len(models) > 1 or len(digests) > 1
        text = f"Probabilities are those of {', '.join(models)}." if models else ""
        if several:
            text += " Files with different models cannot be compared."
        if unknown:
            text += f" {unknown:,} file(s) do not say of which model: keep the .json of each table beside it."
        if not several and not unknown:
            text += " A model of the same cohort is best."
        verdict: Verdict = "with care" if several or unknown else "yes"
        yield Statement("Do all probabilities come from one model?", verdict, text.strip())


def _contamination(outputs: Outputs) -> Iterator[Statement]:
    question = "Are the samples free of each other's junctions?"
    findings = outputs.of("contamination")
    if not findings:
        yield Statement(
            question, "not checked", "Run hpcvdj contamination on the samples before you believe in sharing."
        )
    advice = " Shared nucleotide junctions may be copies, and clones with many reads may have been carried over."
    for finding in findings:
        mixed = bool(finding.facts.get("standing_out") or finding.facts.get("of_one_person"))
        text = _of_several(findings, finding) + pairs_standing_out(finding) + advice * mixed
        yield Statement(question, "no" if mixed else "yes", text)


def _sharing(outputs: Outputs) -> Iterator[Statement]:
    findings = outputs.of("sharing")
    said = {pairs_standing_out(finding) for finding in outputs.of("contamination")}
    for finding in findings:
        facts = finding.facts
        hits, tested = facts["hits"], facts["tested"]
        text = _of_several(findings, finding)
        text += f"q = {shown(facts['q'])}; {hits:,} of {tested:,} sequences have a q-value of at most 0.05. "
        if facts.get("standing_out"):
            pairs = pairs_standing_out(finding)
            text += "" if pairs in said else f"{pairs} "
            text += "Copies look like sharing, and make q too small. "
        if facts.get("likely_copies"):
            text += f"{facts['likely_copies']:,} of the hits are likely copies. "
        verdict: Verdict = "no"
        if facts.get("q_at_bound"):
            text += "The fit of q stopped at its bound: the model does not explain the sharing."
        elif not hits:
            text += "The sharing of single sequences is what recombination explains."
        else:
            verdict = "with care"
            text += "They are shared by more individuals than the model explains, which is no proof of an antigen."
        yield Statement("Are sequences shared beyond chance?", verdict, text)


def _of_several(findings: list[Finding], finding: Finding) -> str:
    """The name of a file, where there are several of its kind."""
    return f"{finding.path.name}: " if len(findings) > 1 else ""


def _enrichment(outputs: Outputs) -> Iterator[Statement]:
    findings = outputs.of("enrich")
    if not findings:
        return
    hits = sum(finding.facts.get("hits", 0) for finding in findings)
    kappas = [finding.facts["kappa"] for finding in findings if finding.facts.get("kappa") is not None]
    settings = [finding.facts["settings"] for finding in findings]
    most_q = " or ".join(f"{q:g}" for q in sorted({each.get("max_q", 0.001) for each in settings}))
    text = f"{hits:,} hits with a q-value of at most {most_q} in {len(findings):,} sample(s). "
    if kappas:
        least, most = min(kappas), max(kappas)
        text += f"κ = {shown(least)}" + (f" to {shown(most)}. " if most > least else ". ")
        if any(each.get("kappa") == 1 for each in settings):
            text += "κ was set to 1, which is right for generated junctions only. "
    else:
        text += "There is no κ: the comparison is with a control. "
    text += "A hit is a neighbourhood, not a receptor." if hits else "No neighbourhood exceeds what chance explains."
    yield Statement("Are there neighbourhoods beyond chance?", "with care" if hits else "no", text)


def origins(outputs: Outputs) -> Section:
    """Which command wrote each file, and when."""
    rows = [
        {
            "file": path.name, "command": command, "made by": facts.get("command_line"),
            "when": facts.get("created_utc"),
            "version": facts.get("hpcvdj_version"), "model": facts.get("model"),
        }
        for path, command, facts in outputs.files
    ]  # fmt: skip
    keys = ["file", "command", "made by", "when", "version", "model"]
    table = Table.of("files_table", "Files of this page", keys, rows, version="hpcvdj")
    return Section(
        "files", "Files", ["Tables without a .json beside them do not say how they were made."], tables=[table]
    )
