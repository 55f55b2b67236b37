"""The first section: what the data support, and the last: where the files come from."""

from collections.abc import Iterator

from hpcvdj.reports.elements import Section, Statement, Table, Verdict, percent, shown
from hpcvdj.reports.findings import pairs_standing_out
from hpcvdj.reports.fits import fit_statements
from hpcvdj.reports.outputs import Outputs

MOST_LEFT_OUT = 0.2
"""Above this share of rows left out, results are to be taken with care."""


def support(outputs: Outputs) -> Section:
    """What can be concluded, question by question."""
    statements = [
        *_rows(outputs),
        *_models(outputs),
        *fit_statements(outputs),
        *_contamination(outputs),
        *_sharing(outputs),
        *_enrichment(outputs),
    ]
    words = ["Read this first. Each line says whether the data support a conclusion, and what speaks against it."]
    return Section("support", "What the data support", words, statements=statements)


def _rows(outputs: Outputs) -> Iterator[Statement]:
    question = "Were most rows used?"
    parts = []
    for command in dict.fromkeys(survey.command for survey in outputs.surveys):
        own = [survey for survey in outputs.surveys if survey.command == command]
        left = sum(sum(rows for _, rows, *_ in survey.excluded) for survey in own)
        parts.append((command, sum(int(survey.counted.sum()) for survey in own), left))
    for finding in outputs.findings:
        if finding.command == "sharing":
            left = sum(sum(each.get("left_out", {}).values()) for each in finding.individuals)
            parts.append(("sharing", sum(each["rows"] for each in finding.individuals), left))
    enriched = outputs.of("enrich")
    if enriched:
        read = sum(finding.facts.get("rows_read", 0) for finding in enriched)
        left = sum(
            sum(entry[-1] for entry in finding.facts.get("rows_excluded", []) if isinstance(entry[-1], int))
            + sum(finding.facts.get("rows_left_out", {}).values())
            for finding in enriched
        )
        parts.append(("enrich", read - left, left))
    if parts:
        worst = max(left / max(1, used + left) for _, used, left in parts)
        texts = [
            f"{command}: {used:,} rows used, {left:,} left out ({percent(left, used + left)})"
            for command, used, left in parts
        ]
        verdict: Verdict = (
            "no" if not any(used for _, used, _ in parts) else "with care" if worst > MOST_LEFT_OUT else "yes"
        )
        yield Statement(question, verdict, "; ".join(texts) + ". The reasons are below.")


def _models(outputs: Outputs) -> Iterator[Statement]:
    facts = [survey.facts for survey in outputs.surveys if survey.command == "pgen"]
    facts += [finding.facts for finding in outputs.findings]
    models = dict.fromkeys(str(own["model"]) for own in facts if own.get("model"))
    digests = {str(own["model_sha256"]) for own in facts if own.get("model_sha256")}
    unknown = sum(not own.get("model") for own in facts)
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
    if not outputs.of("contamination"):
        yield Statement(
            question, "not checked", "Run hpcvdj contamination on the samples before you believe in sharing."
        )
    for finding in outputs.of("contamination"):
        out = bool(finding.facts.get("standing_out") or finding.facts.get("of_one_person"))
        advice = (
            " Shared nucleotide junctions may be copies, and clones with many reads may have been carried over."
            if out
            else ""
        )
        yield Statement(question, "no" if out else "yes", pairs_standing_out(finding) + advice)


def _sharing(outputs: Outputs) -> Iterator[Statement]:
    for finding in outputs.of("sharing"):
        facts = finding.facts
        hits, tested = facts["hits"], facts["tested"]
        text = f"q = {shown(facts['q'])}; {hits:,} of {tested:,} sequences have a q-value of at most 0.05. "
        if facts.get("standing_out"):
            text += f"{pairs_standing_out(finding)} Copies look like sharing, and make q too small"
            text += ". "
        if facts.get("likely_copies"):
            text += f"{facts['likely_copies']:,} of the hits are likely copies. "
        verdict: Verdict
        if facts.get("q_at_bound"):
            verdict, text = "no", text + "The fit of q stopped at its bound: the model does not explain the sharing."
        elif not hits:
            verdict, text = "no", text + "The sharing of single sequences is what recombination explains."
        else:
            verdict, text = (
                "with care",
                text + "They are shared by more individuals than the model explains, which is no proof of an antigen.",
            )
        yield Statement("Are sequences shared beyond chance?", verdict, text)


def _enrichment(outputs: Outputs) -> Iterator[Statement]:
    findings = outputs.of("enrich")
    if not findings:
        return
    hits = sum(finding.facts.get("hits", 0) for finding in findings)
    kappas = [finding.facts["kappa"] for finding in findings if finding.facts.get("kappa") is not None]
    settings = [finding.facts["settings"] for finding in findings]
    most_q = " or ".join(f"{q:g}" for q in sorted({own.get("max_q", 0.001) for own in settings}))
    text = f"{hits:,} hits with a q-value of at most {most_q} in {len(findings):,} sample(s). "
    if kappas:
        least, most = min(kappas), max(kappas)
        text += f"κ = {shown(least)}" + (f" to {shown(most)}. " if most > least else ". ")
        if any(own.get("kappa") == 1 for own in settings):
            text += "κ was set to 1, which is right for generated junctions only. "
    else:
        text += "There is no κ: the comparison is with a control. "
    text += "A hit is a neighbourhood, not a receptor." if hits else "No neighbourhood exceeds what chance explains."
    yield Statement("Are there neighbourhoods beyond chance?", "with care" if hits else "no", text)


def origins(outputs: Outputs) -> Section:
    """Which command wrote each file, and when."""
    files = [(survey.path, survey.command, survey.facts) for survey in outputs.surveys]
    files += [(finding.path, finding.command, finding.facts) for finding in outputs.findings]
    rows = [
        {
            "file": path.name, "command": command, "made by": facts.get("command_line"),
            "when": facts.get("created_utc"),
            "version": facts.get("hpcvdj_version"), "model": facts.get("model"),
        }
        for path, command, facts in files
    ]  # fmt: skip
    keys = ["file", "command", "made by", "when", "version", "model"]
    table = Table.of("files_table", "Files of this page", keys, rows, version="hpcvdj")
    return Section("files", "Files", ["Tables in text do not say how they were made."], tables=[table])
