"""The first section, about what the data support, and the last, about where the files come from."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from hpcvdj.chance.clonotypes import REPEATED, REPEATED_ROWS
from hpcvdj.chance.p_values import copies_text, needs_text
from hpcvdj.errors import few
from hpcvdj.reports.associations import inflation_of, noise_text
from hpcvdj.reports.elements import PageTable, Section, Statement, Verdict, percent, shown
from hpcvdj.reports.findings import common_junctions, is_given, is_too_small, pairs_standing_out
from hpcvdj.reports.fits import fit_statements
from hpcvdj.reports.outputs import DIFFERS, NO_KAPPA, TIMES, Finding, Outputs, spelled
from hpcvdj.reports.parts import ELSEWHERE, NOT_PRODUCTIVE, rows_of_run
from hpcvdj.results.facts import Facts

MOST_INFLATION = 1.2
"""Above this inflation of p-values, associations need care."""

MOST_LEFT_OUT = 0.2
"""Above this share of rows left out, results need care."""

FEWEST_TESTS = 10
"""That none of fewer tests has a hit says little."""

NO_LOSS = {
    "with a junction that another row has": (REPEATED, REPEATED_ROWS), NOT_PRODUCTIVE: (NOT_PRODUCTIVE,),
    "of another locus": ("other locus", "(the model is of", "(the germline table is of"), ELSEWHERE: (ELSEWHERE,),
}  # fmt: skip
"""What to say of rows that are no loss, and parts of their reasons.  The first count together with another row."""

_OF_RUN = ("tables", "model_sha256", "command_line", "created_utc")
"""The facts that files of one run of `annotate` have in common."""

NOTHING_TESTED: dict[str, str] = {
    "sharing": "no sequence was read",
    "associate": "there are too few donors, or too few of them have the same sequence",
    TIMES: "too few clonotypes have enough reads",
    "enrich": "too few clonotypes have neighbours",
    "annotate": "too few clonotypes have the V and J genes of a record",
}
"""Why a command tests nothing, if it tests nothing."""


def support(outputs: Outputs) -> Section:
    """The section about what can be concluded; statements about one question with the same verdict are merged."""
    statements = (_undone, _rows, _models, fit_statements, _contamination, _sharing, _association, _expansion,
                  _enrichment, _annotation)  # fmt: skip
    answers = defaultdict[tuple[str, Verdict], list[str]](list)
    for statement in (statement for ask in statements for statement in ask(outputs)):
        answers[statement.question, statement.verdict].append(statement.answer)
    words = ["Read this first. Each line says whether the data support a conclusion, and what speaks against it."]
    merged = [Statement(*key, " ".join(dict.fromkeys(texts))) for key, texts in answers.items()]
    return Section("support", "What the data support", words, statements=merged)


def _undone(outputs: Outputs) -> Iterator[Statement]:
    undone = [f"{step}: {why.rstrip('.')}." for step, (is_left_out, why) in outputs.not_done.items() if not is_left_out]
    if undone:
        yield Statement("Was everything done that was asked for?", "no", " ".join(undone))


def _rows(outputs: Outputs) -> Iterator[Statement]:
    commands = defaultdict[tuple[int, ...], list[str]](list)
    for command, (used, reasons) in _rows_of_commands(outputs).items():
        kinds = [sum(rows for reason, rows in reasons.items() if any(part in reason for part in parts))
                 for parts in NO_LOSS.values()]  # fmt: skip
        commands[used, reasons.total(), *kinds].append(command)
    if not commands:
        return
    texts, worst = list[str](), 0.0
    for (used, left_out, *kinds), names in commands.items():
        lost = left_out - sum(kinds)
        # Rows that count together with another are among those that could be used, the other kinds are not.
        usable = used + kinds[0] + lost
        worst = max(worst, lost / max(1, usable))
        details = [f"{rows:,} {words}" for rows, words in zip(kinds, NO_LOSS, strict=True) if rows]
        share = f" ({percent(lost, usable)})"
        if details:
            share = ": " + ", ".join([*details, *[f"{lost:,} for other reasons{share}"] * bool(lost)])
        texts.append(f"{', '.join(names)}: {used + left_out:,} rows read, {used:,} used, {left_out:,} left out{share}")
    text = f"{'; '.join(texts)}. The reasons are below, or in the .json beside a table."
    if any(repeated for _, _, repeated, *_ in commands):
        text += " A row with a junction that another row has counts together with it."
    verdict: Verdict = "with care" if worst > MOST_LEFT_OUT else "yes"
    yield Statement("Were most rows used?", verdict if any(used for used, *_ in commands) else "no", text)


def _rows_of_commands(outputs: Outputs) -> dict[str, tuple[int, Counter[str]]]:
    """How many rows each command used, and how many it left out, by reason."""
    used, reasons = Counter[str](), defaultdict[str, Counter[str]](Counter)
    for survey in outputs.surveys:
        used[survey.command] += int(survey.counted.sum())
        for reason, rows, *_ in survey.excluded:
            reasons[survey.command][reason] += rows
    for finding in outputs.findings:
        for individual in finding.individuals:
            used[finding.command] += individual["rows"]
            reasons[finding.command].update(individual.get("left_out", {}))
    # A run of `annotate` reads the tables of all of its samples together.
    runs = defaultdict[tuple[str, ...], list[Facts]](list)
    for finding in outputs.of("annotate"):
        runs[tuple(str(finding.facts.get(key)) for key in _OF_RUN)].append(finding.facts)
    of_tables = [("enrich", [finding.facts]) for finding in outputs.of("enrich")]
    for command, samples in [*of_tables, *(("annotate", samples) for samples in runs.values())]:
        rows, left_out = rows_of_run(samples)
        used[command] += rows
        reasons[command].update(left_out)
    return {command: (rows, reasons[command]) for command, rows in used.items()}


def _models(outputs: Outputs) -> Iterator[Statement]:
    files = [path for path, command, _ in outputs.files if command != "count"]
    if not files:
        return
    of_model = defaultdict[str, list[str]](list)
    of_locus = defaultdict[str, set[str]](set)
    for path in filter(outputs.models.get, files):
        of_model[outputs.models[path]].append(outputs.labels[path])
        for locus in outputs.loci[path] or {""}:
            of_locus[locus].add(outputs.models[path])
    several, unknown = len(of_model) > 1, sum(path not in outputs.models for path in files)
    ranked = sorted(of_model.items(), key=lambda item: -len(item[1]))
    models = [f"{model} ({few(labels)})" if several else model for model, labels in ranked]
    text = f"Probabilities are those of {'; '.join(models)}. " * bool(models)
    if several and "" not in of_locus and all(len(models) == 1 for models in of_locus.values()):
        text += "Each locus has one model: compare files of the same locus only. "
    elif several:
        text += "Files with different models cannot be compared. "
        asked = {finding.path for finding in outputs.of("contamination")}
        if len({model for path, model in outputs.models.items() if path not in asked}) == 1:
            text += "Contamination uses a model only to tell which junctions are improbable. "
    text += f"{unknown:,} file(s) do not say of which model: keep the .json of each table beside it. " * bool(unknown)
    text += "A model of the same cohort is best, if it has enough rows to tell it." * (not several and not unknown)
    yield Statement("Do all probabilities come from one model?", "with care" if several or unknown else "yes",
                    text.strip())  # fmt: skip


def _contamination(outputs: Outputs) -> Iterator[Statement]:
    question = "Are the samples free of each other's junctions?"
    findings, amino = outputs.of("contamination"), [f for f in outputs.of("sharing") if f.facts.get("not_available")]
    if amino and not findings:
        yield Statement(question, "not checked", "Amino acids alone do not tell copies: that needs nucleotides.")
    elif not findings:
        run_it = "Run hpcvdj contamination on the samples before you believe in sharing."
        yield Statement(question, "not checked", _why_not(outputs, "contamination") or run_it)
    checked, of_page = (frozenset[str]().union(*(each.loci for each in of)) for of in (findings, outputs.findings))
    if checked and (others := of_page - checked):
        why = _why_not(outputs, "contamination")
        remedy = f". {why}" if why else ": run hpcvdj contamination on them, too."
        yield Statement(question, "not checked", f"The samples of {spelled(others)} were not compared{remedy}")
    advice = " Shared nucleotide junctions may be copies, and clones with many reads may have been carried over."
    for finding in findings:
        mixed = bool(finding.facts.get("standing_out") or finding.facts.get("of_one_person"))
        common = common_junctions(finding)
        text = _of_several(outputs, finding) + pairs_standing_out(finding) + advice * bool(mixed or common)
        lacking, pairs = finding.facts.get("no_power") or 0, len(finding.names) * (len(finding.names) - 1) // 2
        # Nothing can be seen in pairs without power.
        verdict: Verdict = "with care" if common or lacking else "yes"
        yield Statement(question, "no" if mixed else "not checked" if pairs == lacking else verdict, text)


def _why_not(outputs: Outputs, step: str) -> str:
    """Sentences that say why the analyses of the page did not do a step; empty if nobody asked them to."""
    # Of several analyses, the name of each precedes the step.  Those that leave it out come first.
    reasons = [why for name, why in outputs.not_done.items() if name.rpartition(", ")[2] == step]
    texts = [_sentence(reason) for _, reason in sorted(reasons, key=lambda why: not why[0])]
    return "".join(dict.fromkeys(texts)).strip()


def _sharing(outputs: Outputs) -> Iterator[Statement]:
    of_contamination = {pairs_standing_out(finding) for finding in outputs.of("contamination")}
    for finding in outputs.of("sharing"):
        facts, hits, tested = finding.facts, finding.facts["hits"], finding.facts["tested"]
        text = _of_several(outputs, finding)
        if not tested:
            yield Statement("Are sequences shared beyond chance?", "not checked", text + _nothing_tested("sharing"))
            continue
        text += f"q = {shown(facts['q'])}; {hits:,} of {tested:,} sequences have a q-value of at most 0.05. "
        if facts.get("standing_out"):
            pairs = pairs_standing_out(finding)
            text += "" if pairs in of_contamination else f"{pairs} "
            text += "Copies look like sharing. "
            text += "q is fitted without the likely ones. " * (not is_given(facts))
        if is_too_small(facts):
            text += "q is too small, as some contaminated each other, and the others share too little for a fit. "
        if facts.get("likely_copies"):
            text += f"{facts['likely_copies']:,} of the hits are likely copies. "
        if facts.get("hits_of_contaminated"):
            text += f"{facts['hits_of_contaminated']:,} more may be copies: most individuals share other copies. "
        if facts.get("q_at_bound"):
            text += "This is the largest q: without the hits, no more is shared than recombination makes. "
        if facts.get("q_refuted"):
            text += "q does not explain what is shared, so p-values are wrong, or there are copies. "
        verdict: Verdict = "no"
        if hits > (facts.get("likely_copies") or 0) + (facts.get("hits_of_contaminated") or 0):
            verdict = "with care"
            text += "They are shared by more individuals than the model explains, which is no proof of an antigen."
        elif not hits:
            text += "The sharing of single sequences is what recombination explains."
        yield Statement("Are sequences shared beyond chance?", verdict, text)


def _association(outputs: Outputs) -> Iterator[Statement]:
    for finding in outputs.of("associate"):
        facts, hits, tested = finding.facts, finding.facts["hits"], finding.facts["tested"]
        text = _of_several(outputs, finding)
        number = f"{tested:,} test" + "s" * (tested != 1)
        text += f"{hits:,} hits among {number}. " if tested else f"{_nothing_tested('associate')} "
        inflated = [phenotype for phenotype in facts["phenotypes"] if (inflation_of(phenotype) or 0) > MOST_INFLATION]
        if inflated:
            text += f"P-values of {inflated[0]['phenotype']} are inflated ({shown(inflated[0]['inflation'])}): "
            text += "something else differs between cases and controls, or very many sequences go with it. "
        if copies := copies_text(facts["phenotypes"]):
            text += f"{copies}. "
        if facts.get("standing_out") or facts.get("common_source"):
            text += "Individuals share improbable junctions: copies within a batch look like association. "
        for name in ("unmatched", "gene_usage"):
            if facts.get(name):
                text += _sentence(facts[name])
        if hits:
            text += "A hit goes with the phenotype, which is no proof of a cause."
        elif tested < FEWEST_TESTS:
            text += "So few tests say little of other sequences." * bool(tested)
        else:
            text += f"Chance explains {'the others' if copies else 'it'}."
        if not hits and len(facts["phenotypes"]) == 1 and (needed := facts["phenotypes"][0].get("a_hit_needs")):
            text += f" A single hit needs {needs_text(needed)}."
        yield Statement("Do sequences go with the phenotype?", _verdict(tested, hits), text.strip())


def _expansion(outputs: Outputs) -> Iterator[Statement]:
    for finding in outputs.of(TIMES):
        facts, hits, tested = finding.facts, finding.facts["hits"], finding.facts["tested"]
        text = _of_several(outputs, finding)
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


def _sentence(text: str) -> str:
    """Words of the command line as a sentence, with a space after it."""
    begin = text[0].upper() if text[0].isascii() else text[0]
    end = "" if text.endswith("?") else "."
    return f"{begin}{text[1:]}{end} ".replace("kappa", "κ")


def _verdict(tested: int, hits: int) -> Verdict:
    if not tested:
        return "not checked"
    return "with care" if hits else "no"


def _of_several(outputs: Outputs, finding: Finding) -> str:
    """The name of a file, if there are several of its kind."""
    return f"{outputs.labels[finding.path]}: " if len(outputs.of(finding.command)) > 1 else ""


def _enrichment(outputs: Outputs) -> Iterator[Statement]:
    findings = outputs.of("enrich")
    if not findings:
        return
    hits, tested = (sum(finding.facts[name] for finding in findings) for name in ("hits", "tested"))
    untested = [finding.sample for finding in findings if not finding.facts["tested"]]
    with_hits = sum(finding.facts["hits"] > 0 for finding in findings)
    known = [finding for finding in findings if finding.facts.get("kappa") is not None]
    bounds = [finding for finding in known if (finding.facts.get("kappa_interval") or [1])[0] == 0]
    kappas = [finding.facts["kappa"] for finding in known if finding not in bounds]
    settings = [finding.facts["settings"] for finding in findings]
    most_q = " or ".join(f"{q:g}" for q in sorted({chosen.get("max_q", 0.001) for chosen in settings}))
    of_samples = f"{with_hits:,} of {len(findings):,} sample(s)"
    text = f"{hits:,} hits with a q-value of at most {most_q} in {of_samples}. " if tested else ""
    if untested:
        text += f"{few(untested)}: {_nothing_tested('enrich')} "
    if kappas:
        least, most = min(kappas), max(kappas)
        text += f"κ = {shown(least)}" + (f" to {shown(most)}. " if most > least else ". ")
        if any(chosen.get("kappa") == 1 for chosen in settings):
            text += "κ was set to 1, which is right for generated junctions only. "
    if bounds:
        text += f"{few([finding.sample for finding in bounds])}: too few neighbours; κ is an upper bound. "
    if not known:
        text += "There is no κ: the comparison is with a control. "
    if hits:
        text += "A hit is a neighbourhood, not a receptor."
    elif tested:
        text += "No neighbourhood exceeds what chance explains."
    yield Statement("Are there neighbourhoods beyond chance?", _verdict(tested, hits), text.strip())


def _annotation(outputs: Outputs) -> Iterator[Statement]:
    findings = outputs.of("annotate")
    if not findings:
        return
    text = ""
    fitted = [f for f in findings if f.facts["kappa"]["source"] == "records"]
    for of, chance in ((fitted, False), ([f for f in findings if f not in fitted], True)):
        if of:
            hits, expected = (sum(f.facts[name] for f in of) for name in ("found", "expected"))
            text += f"{len(of):,} samples have" if of[1:] else f"{of[0].sample} has"
            text += f" {hits:,} hits, "
            text += f"where {expected:,.1f} are expected by chance. " if chance else "to whose number κ is fitted. "
    known = [f for f in findings if f.facts["tested"] and f.facts.get("decoys_passed") is not False
             and f.facts["kappa"]["source"] not in NO_KAPPA]  # fmt: skip
    called = sorted((f for f in findings if f.facts["hits_called"] + f.facts["epitopes_called"]),
                    key=lambda f: -f.facts["hits_called"])  # fmt: skip
    if called:
        hits, epitopes = (sum(f.facts[name] for f in called) for name in ("hits_called", "epitopes_called"))
        most_q = " or ".join(f"{q:g}" for q in sorted({f.facts["settings"].get("max_q", 0.05) for f in findings}))
        text += f"At a false discovery rate of at most {most_q}, called: {hits:,} hits and {epitopes:,} epitopes, in "
        text += few([f"{f.sample} ({f.facts['hits_called']:,}, {f.facts['epitopes_called']:,})" for f in called]) + ". "
    elif known:
        text += "No more than chance is shown. "
    kappas = sorted({facts["kappa"]["value"] for facts in (f.facts for f in findings) if facts["tested"]})
    if kappas:
        text += f"κ = {' to '.join(shown(kappa) for kappa in dict.fromkeys((kappas[0], kappas[-1])))}. "
    for why, names in (
        (f"Nothing could be tested: {NOTHING_TESTED['annotate']}",
         [f.sample for f in findings if not f.facts["tested"]]),
        ("The decoys come out more often than chance allows, so nothing is called",
         [f.sample for f in findings if f.facts.get("decoys_passed") is False]),
        ("No decoys checked this; --decoys gives some",
         [f.sample for f in called if f.facts.get("decoys_passed") is None]),
        *((text, [f.sample for f in findings if f.facts["kappa"]["source"] == source])
          for source, text in NO_KAPPA.items()),
        ("κ of all hits hides what they have in common", [f.sample for f in fitted]),
        *((f"Hits are far more common than in the other samples; --kappa {other['kappa']:.2f}, that of the others, "
           "tests them", [f.sample]) for f in findings if (other := f.facts.get("of_the_others"))),
        ("κ differs between classes of sequences, so no single κ is right, and some hits are commoner than expected",
         [f.sample for f in known if any(test["p_value"] < DIFFERS for test in f.facts.get("kappa_by", {}).values())]),
    ):  # fmt: skip
        if names:
            text += f"{few(names)}: {_sentence(why)}"
    yield Statement("Are there clonotypes of known specificity beyond chance?", _verdict(len(known), len(called)),
                    text.strip())  # fmt: skip


def origins(outputs: Outputs) -> Section:
    """The section about the files: which command wrote each, and when."""
    rows = [
        {"file": outputs.labels[path], "command": command, "made by": facts.get("command_line"),
         "when": facts.get("created_utc"), "version": facts.get("hpcvdj_version"), "model": facts.get("model")}
        for path, command, facts in outputs.files
    ]  # fmt: skip
    keys = ["file", "command", "made by", "when", "version", "model"]
    table = PageTable.of("files_table", "Files of this page", keys, rows, version="hpcvdj")
    words = ["Tables without a .json beside them do not say how they were made."]
    return Section("files", "Files", words, tables=[table])
