"""The first section: what the data support, and the last: where the files come from."""

from collections.abc import Iterator

from hpcvdj.errors import few
from hpcvdj.reports.associations import inflation_of, noise_text
from hpcvdj.reports.elements import Section, Statement, Table, Verdict, percent, shown
from hpcvdj.reports.findings import chance_of_hits, pairs_standing_out
from hpcvdj.reports.fits import fit_statements
from hpcvdj.reports.outputs import DIFFERS, TIMES, Finding, Outputs

MOST_INFLATION = 1.2
"""Above this inflation of p-values, associations are to be taken with care."""

MOST_LEFT_OUT = 0.2
"""Above this share of rows left out, results are to be taken with care."""

NOTHING_TESTED: dict[str, str] = {
    "sharing": "no sequence was read",
    "associate": "there are too few donors, or too few of them have the same sequence",
    TIMES: "too few clonotypes have enough reads",
    "enrich": "too few clonotypes have neighbours",
    "annotate": "too few clonotypes have the V and J genes of a record",
}
"""Why there is no test of a command, if there is none."""


def support(outputs: Outputs) -> Section:
    """What can be concluded, question by question; statements of several files with the same verdict are one."""
    statements = (
        _undone,
        _rows,
        _models,
        fit_statements,
        _contamination,
        _sharing,
        _association,
        _expansion,
        _enrichment,
        _annotation,
    )
    answers: dict[tuple[str, Verdict], list[str]] = {}
    for statement in (statement for ask in statements for statement in ask(outputs)):
        answers.setdefault((statement.question, statement.verdict), []).append(statement.answer)
    words = ["Read this first. Each line says whether the data support a conclusion, and what speaks against it."]
    merged = [Statement(*asked, " ".join(dict.fromkeys(given))) for asked, given in answers.items()]
    return Section("support", "What the data support", words, statements=merged)


def _undone(outputs: Outputs) -> Iterator[Statement]:
    if outputs.undone:
        text = " ".join(f"{step}: {reason.rstrip('.')}." for step, reason in outputs.undone.items())
        yield Statement("Was everything done that was asked for?", "no", text)


def _rows(outputs: Outputs) -> Iterator[Statement]:
    numbers: dict[str, tuple[int, int]] = {}

    def add(command: str, used: int, left_out: int) -> None:
        before = numbers.get(command, (0, 0))
        numbers[command] = before[0] + used, before[1] + left_out

    for survey in outputs.surveys:
        add(survey.command, int(survey.counted.sum()), sum(rows for _, rows, *_ in survey.excluded))
    for command in ("sharing", "associate", TIMES):
        for finding in outputs.of(command):
            for each in finding.individuals:
                add(command, each["rows"], sum(each.get("left_out", {}).values()))
    for finding in outputs.of("enrich"):
        excluded = [entry[-1] for entry in finding.facts.get("rows_excluded", [])]
        left_out = sum(rows for rows in excluded if isinstance(rows, int))
        left_out += sum(finding.facts.get("rows_left_out", {}).values())
        add("enrich", finding.facts.get("rows_read", 0) - left_out, left_out)
    # The tables of all samples of a run were read together.
    for facts in {str(finding.facts["tables"]): finding.facts for finding in outputs.of("annotate")}.values():
        left_out = sum(entry[-1] for entry in facts.get("rows_excluded", []) if isinstance(entry[-1], int))
        add("annotate", facts.get("rows_read", 0) - left_out, left_out)
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
    # Contamination asks only which junctions are improbable.
    facts = [facts for _, command, facts in outputs.files if command not in ("count", "contamination")]
    facts = facts or [facts for _, command, facts in outputs.files if command != "count"]
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
        if not tested:
            yield Statement("Are sequences shared beyond chance?", "not checked", text + _nothing_tested("sharing"))
            continue
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


def _association(outputs: Outputs) -> Iterator[Statement]:
    findings = outputs.of("associate")
    for finding in findings:
        facts, hits, tested = finding.facts, finding.facts["hits"], finding.facts["tested"]
        text = _of_several(findings, finding)
        text += f"{hits:,} hits among {tested:,} tests. " if tested else f"{_nothing_tested('associate')} "
        inflated = [each for each in facts["phenotypes"] if (inflation_of(each) or 0) > MOST_INFLATION]
        if inflated:
            text += f"P-values of {inflated[0]['phenotype']} are inflated ({shown(inflated[0]['inflation'])}): "
            text += "something else differs between cases and controls, or very many sequences go with it. "
        if facts.get("likely_copies"):
            text += f"{facts['likely_copies']:,} sequences are likely copies, which do not count. "
        if facts.get("standing_out"):
            text += "Pairs of individuals share improbable junctions: copies within a batch look like association. "
        if hits:
            text += "A hit goes with the phenotype, which is no proof of a cause."
        elif tested:
            text += "Chance explains it."
        yield Statement("Do sequences go with the phenotype?", _verdict(tested, hits), text.strip())


def _expansion(outputs: Outputs) -> Iterator[Statement]:
    findings = outputs.of(TIMES)
    for finding in findings:
        facts, hits, tested = finding.facts, finding.facts["hits"], finding.facts["tested"]
        text = _of_several(findings, finding)
        if tested:
            text += f"{hits:,} hits among {tested:,} tests, in {len(facts['pairs']):,} pair(s) of times. "
        else:
            text += f"{_nothing_tested(TIMES)} "
        text += f"{noise_text(finding)} "
        if (inflation_of(facts, "clonotypes") or 0) > MOST_INFLATION:
            text += f"P-values are inflated ({shown(facts['inflation'])}): very many clonotypes changed, or the noise "
            text += "of some samples is larger than that of others. "
        text += "Noise explains the changes." if tested and not hits else ""
        yield Statement("Did clonotypes expand between times?", _verdict(tested, hits), text.strip())


def _nothing_tested(command: str) -> str:
    return f"Nothing could be tested: {NOTHING_TESTED[command]}."


def _verdict(tested: int, hits: int) -> Verdict:
    if not tested:
        return "not checked"
    return "with care" if hits else "no"


def _of_several(findings: list[Finding], finding: Finding) -> str:
    """The name of a file, where there are several of its kind."""
    return f"{finding.path.name}: " if len(findings) > 1 else ""


def _enrichment(outputs: Outputs) -> Iterator[Statement]:
    findings = outputs.of("enrich")
    if not findings:
        return
    hits, tested = (sum(finding.facts[name] for finding in findings) for name in ("hits", "tested"))
    untested = [finding.sample for finding in findings if not finding.facts["tested"]]
    kappas = [finding.facts["kappa"] for finding in findings if finding.facts.get("kappa") is not None]
    settings = [finding.facts["settings"] for finding in findings]
    most_q = " or ".join(f"{q:g}" for q in sorted({each.get("max_q", 0.001) for each in settings}))
    text = f"{hits:,} hits with a q-value of at most {most_q} in {len(findings):,} sample(s). " if tested else ""
    if untested:
        text += f"{few(untested)}: {_nothing_tested('enrich')} "
    if kappas:
        least, most = min(kappas), max(kappas)
        text += f"κ = {shown(least)}" + (f" to {shown(most)}. " if most > least else ". ")
        if any(each.get("kappa") == 1 for each in settings):
            text += "κ was set to 1, which is right for generated junctions only. "
    else:
        text += "There is no κ: the comparison is with a control. "
    if hits:
        text += "A hit is a neighbourhood, not a receptor."
    elif tested:
        text += "No neighbourhood exceeds what chance explains."
    yield Statement("Are there neighbourhoods beyond chance?", _verdict(tested, hits), text.strip())


MOST_SAMPLES = 8
"""Samples of `annotate` of which each has a statement of its own."""

KNOWN_BEYOND_CHANCE = "Are there clonotypes of known specificity beyond chance?"


def _annotation(outputs: Outputs) -> Iterator[Statement]:
    findings = outputs.of("annotate")
    if len(findings) > MOST_SAMPLES:
        yield _many_annotated(findings)
        return
    for finding in findings:
        facts, kappa = finding.facts, finding.facts["kappa"]
        called = facts["hits_called"] + facts["epitopes_called"]
        text = f"{finding.sample}: {chance_of_hits(finding)} "
        text += f"κ = {shown(kappa['value'])} ({kappa['source']}), dispersion {shown(facts['dispersion'])}. "
        verdict: Verdict = "no"
        if not facts["tested"]:
            verdict = "not checked"
            text += f"{_nothing_tested('annotate')} "
        elif facts.get("decoys_passed") is False:
            text += "The decoys come out more often than chance allows, so nothing is called. "
        elif kappa["source"] == "none":
            text += "Too few hits to know κ, so nothing is called. "
        elif called:
            verdict = "with care"
            most_q = facts["settings"].get("max_q", 0.05)
            text += f"At a false discovery rate of at most {most_q:g}: {facts['hits_called']:,} hits, and "
            text += f"{facts['epitopes_called']:,} epitopes. "
            if facts.get("decoys_passed") is None:
                text += "No decoys checked this: give some with --decoys. "
        else:
            text += "No more than chance is shown. "
        if kappa["source"] == "records":
            text += "κ of all hits hides what they have in common. "
        differ = [name for name, own in facts.get("kappa_by", {}).items() if own["p_value"] < DIFFERS]
        if differ:
            by = ", ".join(differ)
            text += f"κ differs by {by}: no single κ is right, and some hits are commoner than expected."
        yield Statement(KNOWN_BEYOND_CHANCE, verdict, text.strip())


def _many_annotated(findings: list[Finding]) -> Statement:
    """One statement about all samples: how many hits there are, where something is called, and where nothing can be."""
    facts = [finding.facts for finding in findings]
    found, expected = sum(own["found"] for own in facts), sum(own["expected"] for own in facts)
    text = f"{len(findings):,} samples have {found:,} hits, where {expected:,.1f} are expected by chance. "
    called = sorted((f for f in findings if f.facts["hits_called"] + f.facts["epitopes_called"]),
                    key=lambda f: -f.facts["hits_called"])  # fmt: skip
    if called:
        hits, epitopes = (sum(f.facts[name] for f in called) for name in ("hits_called", "epitopes_called"))
        text += f"Called: {hits:,} hits and {epitopes:,} epitopes in {len(called):,} of them, "
        text += few([f"{f.sample} ({f.facts['hits_called']:,}, {f.facts['epitopes_called']:,})" for f in called]) + ". "
    elif any(own["tested"] for own in facts):
        text += "No more than chance is shown. "
    for why, names in (
        (f"Nothing could be tested, as {NOTHING_TESTED['annotate']}, in",
         [f.sample for f in findings if not f.facts["tested"]]),
        ("The decoys come out more often than chance allows, so nothing is called, in",
         [f.sample for f in findings if f.facts.get("decoys_passed") is False]),
        ("Too few hits to know κ, so nothing is called, in",
         [f.sample for f in findings if f.facts["kappa"]["source"] == "none"]),
        ("κ of all hits hides what they have in common in",
         [f.sample for f in findings if f.facts["kappa"]["source"] == "records"]),
    ):  # fmt: skip
        if names:
            text += f"{why} {few(names)}. "
    return Statement(KNOWN_BEYOND_CHANCE, _verdict(sum(own["tested"] for own in facts), len(called)), text.strip())


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
