"""Phenotypes from the metadata of donors: cases of a disease, HLA alleles, and numbers."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pyarrow as pa

from hpcvdj.association.law import levels_of
from hpcvdj.association.settings import Donors
from hpcvdj.chance.p_values import Bools, Counts
from hpcvdj.errors import InputError, few, log, option
from hpcvdj.recombination.names import MISSING
from hpcvdj.recombination.selection import finite_number
from hpcvdj.repertoires.batches import as_strings
from hpcvdj.repertoires.metadata import column_of, columns_in, listed_in, names_column, others_in, title_of

Family = Literal["case", "hla", "trend"]

FEWEST_OF_ALLELE = 10
"""The smallest number of donors that have an HLA allele that is tested, and of donors that lack it."""

NOT_IN_ALL = {"DRB3", "DRB4", "DRB5"}
"""HLA genes that many people do not have."""

BATCHES = {"batch", "run", "plate", "pool"}
"""Words in the names of columns of metadata that say which samples were sequenced together."""

MOST_UNLIKE = 0.001
"""Cases and controls differ in another column of the metadata if the p-value of a chi-squared test is at most this."""


MANY_ALIKE = 0.25
"""Users hear of more than this share of donors whose stratum has one value only."""


@dataclass(frozen=True)
class Phenotype:
    """A phenotype of donors.

    family   q-values are computed for each family
    donors   int64: the donors with a value, as indices of individuals
    value    int64 [donors]: 1 for a case, else 0; the level of a trend
    stratum  int64 [donors]: the index in `strata`
    strata   what the donors of each stratum have in common
    controls the values of controls, with the number of donors of each; empty unless the family is case
    """

    name: str
    family: Family
    donors: Counts
    value: Counts
    stratum: Counts
    strata: Sequence[str]
    controls: Mapping[str, int] = field(default_factory=dict)

    @property
    def case(self) -> Bools:
        """Which donors are cases, bool [donors]."""
        return np.asarray(self.value == 1)

    @property
    def alike(self) -> int:
        """The number of donors whose stratum has one value only, and so says nothing."""
        of = [self.value[self.stratum == k] for k in range(len(self.strata))]
        return sum(len(values) for values in of if len({*values.tolist()}) < 2)


def phenotypes_of(
    naming: Donors, subject: Mapping[str, str], *, empty: Collection[str] = (), told: bool = False
) -> list[Phenotype]:
    """All phenotypes that are asked for.

    subject  the donor of each sample, in the order of the samples
    empty    donors without a junction, which say nothing and are left out
    told     whether it was logged before which HLA alleles and donors are left out

    InputError if the metadata lack a column, if values do not differ, or if batches tell cases from controls.
    """
    names = list(dict.fromkeys(subject.values()))
    subject = {sample: donor for sample, donor in subject.items() if donor not in empty}
    stratum, strata = _strata(naming, subject, names, told=told)
    asked: list[Phenotype] = []

    def ask(name: str, family: Family, value_of: Mapping[str, int]) -> None:
        donors = np.array([k for k, donor in enumerate(names) if donor in value_of], dtype=np.int64)
        value = np.array([value_of[names[k]] for k in donors.tolist()], dtype=np.int64)
        asked.append(Phenotype(name, family, donors, value, stratum[donors], strata))

    if naming.case is not None:
        ((column, given),) = naming.case.items()
        # As numbers and truth values of a column in memory are read.
        value = as_strings(pa.RecordBatch.from_pydict({column: [given]}))[column][0].as_py().strip()
        value_of = _values(naming, column, subject, "case")
        if value not in value_of.values():
            nobody = "no donor with a junction" if empty else "no donor"
            raise InputError(
                f"{option('case', naming.case)}: {nobody} has {value} in {column}; there are "
                f"{few(sorted({*value_of.values()}))}"
            )
        spelled = {text for text in value_of.values() if text != value and text.casefold() == value.casefold()}
        if spelled and not told:
            log.warning(
                "%s: donors with %s are controls; write the value in one way if they are cases",
                f"{column}={value}", few(sorted(spelled)),
            )  # fmt: skip
        ask(f"{column}={value}", "case", {who: text == value for who, text in value_of.items()})
        others_than = Counter(text for text in value_of.values() if text != value)
        asked[0] = replace(asked[0], controls=dict(others_than.most_common()))
        others = _others(naming, asked[0], subject, names)
        _require_batches(asked[0], others)
        if not told and (line := _differences(asked[0], others)):
            log.warning("%s", line)
    if naming.hla is not None:
        tested, left_out = _alleles(naming.hla, _values(naming, naming.hla, subject, "hla"))
        for line in () if told else left_out:
            log.warning("%s", line)
        for allele, has in tested.items():
            ask(allele, "hla", has)
    if naming.trend is not None:
        ask(naming.trend, "trend", _levels(naming.trend, _values(naming, naming.trend, subject, "trend"), names))
    for phenotype in asked:
        if phenotype.alike == len(phenotype.donors):
            alike = "no stratum has donors of different values" if naming.strata else "all donors have one value"
            remedy = (
                f"leave out columns of {option('strata')}" if naming.strata else "give donors with other values, too"
            )
            raise InputError(f"{phenotype.name}: nothing can be compared, as {alike}; {remedy}")
        # Rare alleles have many such strata, which the summary tells.
        if not told and phenotype.family != "hla" and phenotype.alike > MANY_ALIKE * len(phenotype.donors):
            log.warning(
                "%s: %s of %s donors say nothing, as all of their stratum have one value; give %s columns of fewer "
                "values, such as classes of ages", phenotype.name, f"{phenotype.alike:,}",
                f"{len(phenotype.donors):,}", option("strata"),
            )  # fmt: skip
    return asked


def column_of_names(naming: Donors, samples: Sequence[str]) -> str:
    """The column of the metadata that has the names of the samples; empty if none has any."""
    singles = (naming.hla, naming.trend, naming.subject, naming.time)
    asked_for = [*(naming.case or ()), *(naming.strata or ()), *(column for column in singles if column)]
    return names_column(naming.metadata, samples, asked_for)


def unmatched_in(
    naming: Donors, subject: Mapping[str, str], asked: Sequence[Phenotype], empty: Collection[str] = ()
) -> str:
    """Which donors have no value, and which rows of the metadata name no table: both together hint at a wrong name.

    empty  as of `phenotypes_of`
    """
    names = list(dict.fromkeys(subject.values()))
    named = {k for phenotype in asked for k in phenotype.donors.tolist()}
    without = [name for k, name in enumerate(names) if k not in named and name not in empty]
    column = column_of_names(naming, [*subject])
    others = others_in(naming.metadata, [*subject], column) if column else []
    texts = []
    if without:
        texts = [
            f"the metadata have no value for {len(without):,} of the donors, which are left out: {few(without, 10)}"
        ]
    if others:
        texts.append(f"{len(others):,} row(s) of the metadata name no table, in the column {column}: {few(others, 10)}")
    return "; ".join(texts)


def _values(naming: Donors, column: str, subject: Mapping[str, str], what: str) -> dict[str, str]:
    """The value of each donor that has one."""
    value_of: dict[str, str] = {}
    for sample, value in listed_in(naming.metadata, column, list(subject), what).items():
        if value_of.setdefault(subject[sample], value) != value:
            raise InputError(
                f"{subject[sample]}: its samples have {value_of[subject[sample]]} and {value} in {column}, and a donor "
                "has one value; correct the metadata, or leave out samples or the column"
            )
    if not value_of:
        source, samples = title_of(naming.metadata), [*subject]
        if not names_column(naming.metadata, samples, [column]):
            raise InputError(
                f"{source}: no row is of {few(samples)}; one column must have the names of the tables, or of their "
                f"repertoires; of a table with several donors, {option('individual')} is the column of their names"
            )
        raise InputError(
            f"{source}: the column {column} has no value in the rows of {few(samples)}, or has their names; fill it "
            "in, or name another one"
        )
    return value_of


def _tell_spellings(column: str, values: Iterable[str]) -> None:
    """Warn of values of a column of strata that differ in capitals only."""
    spelled: dict[str, set[str]] = {}
    for value in values:
        spelled.setdefault(value.casefold(), set()).add(value)
    alike = [" and ".join(sorted(texts)) for texts in spelled.values() if len(texts) > 1]
    if alike:
        log.warning("%s: %s are different strata; write a value in one way if they are one", column, few(alike, 5))


def _strata(
    naming: Donors, subject: Mapping[str, str], names: Sequence[str], *, told: bool
) -> tuple[Counts, list[str]]:
    """The stratum of each donor, and the names of the strata; donors that agree in all columns share a stratum.

    A donor that is not in `subject` has stratum -1.
    """
    keys = {name: list[str]() for name in subject.values()}
    for column in naming.strata or ():
        column_of(naming.metadata, column, list(subject), "strata")
        value_of = _values(naming, column, subject, "strata")
        if not told:
            _tell_spellings(column, value_of.values())
        for name, value in value_of.items():
            keys[name].append(value)
    order = {key: k for k, key in enumerate(sorted({tuple(key) for key in keys.values()}))}
    stratum = [order[tuple(keys[name])] if name in keys else -1 for name in names]
    return np.array(stratum, dtype=np.int64), [", ".join(key) for key in order]


def _alleles(column: str, value_of: Mapping[str, str]) -> tuple[dict[str, dict[str, bool]], list[str]]:
    """Whether each donor has each allele that enough donors have, and enough donors lack; and what is left out.

    A donor whose typing leaves an allele open, such as A*02 or A*02:01/A*03:01 that of A*02:01, is left out of its
    test.  A donor without any allele of A was not typed there, and is left out of the tests of all alleles of A.
    """
    if several := [who for who, text in value_of.items() if {"+", "|"} <= set(text)]:
        raise InputError(
            f"{option('hla', column)}: several genotypes, with | between them: {few(several)}; give the alleles that "
            "are certain, with commas between them"
        )
    texts_of = {who: [part for text in re.split(r"[,;|+^~\s]+", given) if (part := _alleles_of(text))]
                for who, given in value_of.items()}  # fmt: skip
    possible = {part: _possible(part) for texts in texts_of.values() for part in texts}
    genes_of = {who: {name.partition("*")[0] for part in texts for name in possible[part]}
                for who, texts in texts_of.items()}  # fmt: skip
    named = Counter(name for texts in texts_of.values() for name in {_shared(possible[part]) for part in texts})
    tested, rare, lines = {}, [], []
    untyped: dict[str, list[str]] = {}
    for allele in sorted(filter(None, named)):
        # A group is tested if enough donors are typed as it, not because they have one of its alleles.
        if named[allele] < FEWEST_OF_ALLELE:
            rare.append(allele)
            continue
        gene, is_allele, _ = allele.partition("*")
        may_lack = not is_allele or gene in NOT_IN_ALL
        not_typed = [] if may_lack else [who for who, genes in genes_of.items() if gene not in genes]
        sure = {part for part, names in possible.items() if all(_is_of(name, allele) for name in names)}
        maybe = {part for part, names in possible.items() if any(_may_be(name, allele) for name in names)} - sure
        has, open_in = dict[str, bool](), dict[str, str]()
        for who, texts in texts_of.items():
            is_sure = not sure.isdisjoint(texts)
            if not is_sure and not maybe.isdisjoint(texts):
                open_in[who] = next(part for part in texts if part in maybe)
            elif who not in not_typed:
                has[who] = is_sure
        if len(has) - sum(has.values()) < FEWEST_OF_ALLELE:
            rare.append(allele)
            continue
        tested[allele] = has
        if not_typed:
            untyped[gene] = not_typed
        if open_in:
            lines.append(
                f"{allele}: {few([f'{who} ({part})' for who, part in open_in.items()], 10)} may have it or not, so "
                f"they are left out of its test; correct {column}: a comma separates alleles of a donor"
            )
    if not tested:
        raise InputError(
            f"{option('hla', column)}: no allele is in {FEWEST_OF_ALLELE} donors or more, and lacking in as many; "
            f"with fewer, test one with {option('case', {'COLUMN': 'VALUE'})}"
        )
    lines += [
        f"{option('hla', column)}: {few(who, 10)} have no allele of {gene}, so they are left out of the tests of its "
        "alleles; correct the metadata if they were typed"
        for gene, who in untyped.items()
    ]
    if others := [name for name in tested if "*" not in name]:
        lines.append(
            f"{option('hla', column)}: {few(others, 10)} are no names of HLA alleles that hpcvdj knows; they are "
            "compared as they are written"
        )
    if rare:
        lines.append(
            f"{option('hla', column)}: not tested, as fewer than {FEWEST_OF_ALLELE} donors are typed so, or lack it: "
            f"{few(rare, 10)}"
        )
    return tested, lines


_GENE = r"(?:HLA-?)?(A|B|C|E|F|G|DRA|D[MOPQR][AB]\d|MIC[AB])W?\*?"
_LONG = r"(?<=DPB1\*)[1-9]\d{2,3}|(?<=MIC[AB]\*)\d{3}"
"""Groups of three digits and more."""

_PROTEIN = re.compile(
    rf"{_GENE}(?:(\d\d?|{_LONG}):(\d\d|[1-9]\d{{2,3}})|(\d\d)(?:([1-9]\d\d)|(\d\d)(?:\d\d)*))(?::\d+)*(?::[A-Z]{{2,}})?"
    "([A-Z]?)"
)
_GROUP = re.compile(rf"{_GENE}(\d\d?|{_LONG})(?::?[A-Z]{{2,}})?")
_NO_ALLELE = re.compile(
    r"(?i:([A-Z0-9]+\*?)?[-–]+|[?.X]|blank|unknown|(HLA-)?Bw[46](\(.*\))?|" + "|".join(map(re.escape, MISSING)) + ")"
)
"""What stands for the second allele of a homozygote, and epitopes that many alleles of B have."""

_OF_GENE = re.compile(rf"{_GENE}\d.*")


def _may_be(name: str, other: str) -> bool:
    """Whether a name stands for another one, or is one of those that it stands for: A*02:01, A*02 or A."""
    return name == other or name.startswith((f"{other}:", f"{other}*")) or other.startswith((f"{name}:", f"{name}*"))


def _is_of(name: str, other: str) -> bool:
    """Whether a name is certainly of another one, as A*02:01 is of A*02:01 and of A*02.

    An allele that is not expressed, such as A*02:01N, is only itself.
    """
    return name == other or (name.startswith((f"{other}:", f"{other}*")) and not name.endswith("N"))


def _alleles_of(text: str) -> str:
    """The alleles between slashes, without what is no allele.

    >>> _alleles_of("A*02:01/A*02:09"), _alleles_of("B27/Bw4"), _alleles_of("A*-"), _alleles_of("Bw4(80I)")
    ('A*02:01/A*02:09', 'B27', '', '')
    """
    return "/".join(part for part in text.split("/") if part and not _NO_ALLELE.fullmatch(part))


def _shared(names: Collection[str]) -> str | None:
    """What names have in common: an allele, the group of several, or None.

    >>> _shared(["A*02:01"]), _shared(["A*02:01", "A*02:09"]), _shared(["A*02:01", "A*03:01"]), _shared(["A"])
    ('A*02:01', 'A*02', None, None)
    """
    (first, *others) = sorted(names)
    if re.fullmatch(_GENE, first):
        return None
    group = first.partition(":")[0] if others else first
    return group if all(_is_of(name, group) for name in names) else None


def _possible(text: str) -> frozenset[str]:
    """The alleles that a text leaves open, as `_two_fields` returns them: several between slashes, or a group.

    >>> [sorted(_possible(text)) for text in ("A*02:01/02:09", "A*02:01/09", "A0201/A*02:01:01", "A*02:01/A*03:01")]
    [['A*02:01', 'A*02:09'], ['A*02:01', 'A*02:09'], ['A*02:01'], ['A*02:01', 'A*03:01']]
    >>> [sorted(_possible(text)) for text in ("A*02/24", "A2/A24", "A2/3")]
    [['A*02', 'A*24'], ['A*02', 'A*24'], ['A*02', 'A*03']]
    """
    first, *others = text.split("/")
    gene, _, fields = _two_fields(first).partition("*")
    group = fields.partition(":")[0]
    alleles = {f"{gene}*{fields}" if fields else gene}
    for other in others:
        # After a group, a number is another group.
        of_group = f"{gene}*{group}:{other}" if ":" in fields else f"{gene}*{other}"
        whole = of_group if other.isdigit() else f"{gene}*{other}" if other[:1].isdigit() else other
        alleles.add(_two_fields(whole))
    return frozenset(alleles)


def _two_fields(allele: str) -> str:
    """The protein of an HLA allele, such as A*02:01 of HLA-A*02:01:01, A*0201 or A0201; another name as it is.

    The N of an allele that is not expressed stays.  A2, which serology finds, and A*02:XX are the group A*02.  What
    cannot be read is any allele of its gene.

    >>> [_two_fields(name) for name in ("HLA-A*02:01:01:02L", "a*0201", "A2", "Cw4", "DRB1*15:01:01", "B*51:11N", "x")]
    ['A*02:01', 'A*02:01', 'A*02', 'C*04', 'DRB1*15:01', 'B*51:11N', 'x']
    >>> [_two_fields(name) for name in ("A0201", "HLA-A02:01", "A*2:01", "Cw0401", "DRB11501", "A*02:XX", "A*2")]
    ['A*02:01', 'A*02:01', 'A*02:01', 'C*04:01', 'DRB1*15:01', 'A*02', 'A*02']
    >>> [_two_fields(name) for name in ("A*020101", "A*02101", "A*02:101", "A*02:01:XX", "A*02:010", "B*07:02-B*08:01")]
    ['A*02:01', 'A*02:101', 'A*02:101', 'A*02:01', 'A', 'B']
    >>> [_two_fields(name) for name in ("MICA*008:04", "MICA*008", "DPB1*104:01", "A*02:1000", "DPB1*1001:01", "A2")]
    ['MICA*008:04', 'MICA*008', 'DPB1*104:01', 'A*02:1000', 'DPB1*1001:01', 'A*02']
    """
    name = allele.upper()
    if found := _PROTEIN.fullmatch(name):
        gene, short, of_short, group, of_three, of_two, suffix = found.groups()
        protein = of_short or of_three or of_two
        return f"{gene}*{(short or group).zfill(2)}:{protein}{'N' if suffix == 'N' else ''}"
    if found := _GROUP.fullmatch(name):
        return f"{found[1]}*{found[2].zfill(2)}"
    found = _OF_GENE.fullmatch(name)
    return found[1] if found else allele.removeprefix("HLA-")


def _levels(column: str, value_of: Mapping[str, str], names: Sequence[str]) -> dict[str, int]:
    """The level of each donor that has a number."""
    numbers: dict[str, float] = {}
    for name in (name for name in names if name in value_of):
        number = finite_number(value_of[name])
        if number is None:
            raise InputError(
                f"{option('trend', column)}: {name} has {value_of[name]!r}; give a number, or leave it empty"
            )
        numbers[name] = number
    return dict(zip(numbers, levels_of(np.array(list(numbers.values()))).tolist(), strict=True))


def _others(
    naming: Donors, asked: Phenotype, subject: Mapping[str, str], names: Sequence[str]
) -> dict[str, tuple[Counter[str], Counter[str]]]:
    """How many cases, and how many controls, have each value of the other columns of the metadata.

    Columns that `strata` names are left out.  Samples of a donor may differ: x and y is then its value.
    """
    counted = {}
    for column in columns_in(naming.metadata):
        if column in (naming.strata or ()) or column in (naming.case or ()):
            continue
        values_of: dict[str, set[str]] = {}
        with suppress(InputError):
            for sample, value in listed_in(naming.metadata, column, list(subject), "strata").items():
                values_of.setdefault(subject[sample], set()).add(value)
        value_of = {donor: " and ".join(sorted(values)) for donor, values in values_of.items()}
        donors = [asked.donors[asked.case == side].tolist() for side in (True, False)]
        of_cases, of_controls = (Counter(value_of.get(names[k], "") for k in side) for side in donors)
        counted[column] = of_cases, of_controls
    return counted


def _require_batches(asked: Phenotype, others: Mapping[str, tuple[Counter[str], Counter[str]]]) -> None:
    """Raise InputError if batches tell cases from controls.

    That is so if all cases, or all controls, are of one batch and no other donor is; if no batch has a case and a
    control, and batches have two donors or more on average (of smaller ones, none may have both by chance); or if all
    cases are of a batch that only some controls are of.
    """
    for column, (of_cases, of_controls) in others.items():
        if BATCHES.isdisjoint(re.split(r"[^a-z]+", column.lower())) or not of_controls:
            continue
        cases, controls = ({batch for batch in of if batch} for of in (of_cases, of_controls))
        of_one = [of.total() > 1 == len(of) for of in (of_cases, of_controls)]
        donors = sum(of_cases[batch] + of_controls[batch] for batch in cases | controls)
        few_batches = len(cases | controls) <= donors / 2
        effects = "its depth, and what contaminated it, would look like the disease"
        if cases and cases.isdisjoint(controls) and (of_one[0] or (controls and (of_one[1] or few_batches))):
            raise InputError(
                f"{asked.name}: no {column} has a case and a control (cases: {few(sorted(cases))}; controls: "
                f"{few(sorted(controls)) or 'not known'}): {effects}, and this cohort cannot tell them apart; give "
                f"cases and controls of the same {column}"
            )
        if cases and of_one[0] and {*of_controls} != cases:
            raise InputError(
                f"{asked.name}: all {asked.case.sum()} cases are of one {column} ({cases.pop()}), and not all "
                f"controls: {effects}; give {option('strata', column)}, which compares donors of one {column}, or "
                "samples of several"
            )


def _differences(asked: Phenotype, others: Mapping[str, tuple[Counter[str], Counter[str]]]) -> str:
    """The columns of metadata in which cases and controls differ, such as sex or place; empty if there are none.

    Columns with a value for less than two donors each, such as names and ages, are left out.
    """
    from scipy.stats import chi2_contingency

    texts = []
    cases = int(asked.case.sum())
    for column, (of_cases, of_controls) in others.items():
        values = sorted({*of_cases, *of_controls}, key=lambda value: (not value, value))
        if not 2 <= len(values) <= len(asked.donors) / 2:
            continue
        table = np.array([[of[value] for value in values] for of in (of_cases, of_controls)])
        if not table.sum(axis=1).all() or chi2_contingency(table, correction=False).pvalue > MOST_UNLIKE:
            continue
        share = table / table.sum(axis=1, keepdims=True)
        k = int(np.argmax(np.abs(share[0] - share[1])))
        value = f"are {values[k]}" if values[k] else "have no value"
        texts.append(
            f"{column} ({table[0, k]:,} of {cases:,} cases and {table[1, k]:,} of {len(asked.donors) - cases:,} "
            f"controls {value})"
        )
    if not texts:
        return ""
    return (
        f"{asked.name}: cases and controls differ in {few(texts, 5)}; what goes with that may look like the phenotype, "
        f"so unless it is another name of it, give {option('strata')} the column"
    )
