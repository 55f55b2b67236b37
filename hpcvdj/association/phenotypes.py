"""What sequences may go with: cases of a disease, an HLA allele, a number; as the metadata say of each donor."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hpcvdj.association.law import levels_of
from hpcvdj.association.settings import Donors
from hpcvdj.chance.p_values import Bools, Counts
from hpcvdj.errors import InputError, few, option
from hpcvdj.repertoires.metadata import column_of, columns_in, listed_in, others_in

Family = Literal["case", "hla", "trend"]

FEWEST_OF_ALLELE = 10
"""Donors that have an HLA allele, from which on it is tested; and donors that lack it."""

BATCHES = ("batch", "run", "run_id", "sequencing_run_id", "plate", "pool")
"""Columns of metadata, in small letters, that say which samples were sequenced together."""


@dataclass(frozen=True)
class Phenotype:
    """What some donors have.

    family   its tests have q-values of their own
    donors   int64: those of whom it is known, as places among the individuals
    value    int64 [donors]: 1 for a case, else 0; of a number its level
    stratum  int64 [donors]: the place of each in `strata`
    strata   what the donors of each have in common
    """

    name: str
    family: Family
    donors: Counts
    value: Counts
    stratum: Counts
    strata: Sequence[str]

    @property
    def case(self) -> Bools:
        """Which donors are cases."""
        return np.asarray(self.value == 1)


def phenotypes_of(given: Donors, subject: Mapping[str, str]) -> list[Phenotype]:
    """All that are asked for.

    subject  the donor of each sample, in the order of the samples

    InputError for columns that the metadata lack, values that say nothing, and cases of a single batch.
    """
    names = list(dict.fromkeys(subject.values()))
    stratum, strata = _strata(given, subject, names)
    asked: list[Phenotype] = []
    if given.case is not None:
        ((column, value),) = given.case.items()
        known = _known(given, column, subject, "case")
        if value not in known.values():
            raise InputError(
                f"{option('case', given.case)}: no donor has {value} in {column}; there are "
                f"{few(sorted({*known.values()}))}"
            )
        asked.append(_labelled(f"{column}={value}", "case", names, {who: own == value for who, own in known.items()},
                               stratum, strata))  # fmt: skip
        _require_batches(given, asked[0], subject, names)
    if given.hla is not None:
        asked += _alleles(given.hla, _known(given, given.hla, subject, "hla"), names, stratum, strata)
    if given.trend is not None:
        asked.append(_trend(given.trend, _known(given, given.trend, subject, "trend"), names, stratum, strata))
    for phenotype in asked:
        if all(len({*phenotype.value[phenotype.stratum == k].tolist()}) < 2 for k in range(len(phenotype.strata))):
            alike = "no stratum has donors of different values" if given.strata else "all donors have one value"
            remedy = (
                f"leave out columns of {option('strata')}" if given.strata else "give donors with other values, too"
            )
            raise InputError(f"{phenotype.name}: nothing can be compared, as {alike}; {remedy}")
    return asked


def unnamed_in(given: Donors, subject: Mapping[str, str], asked: Sequence[Phenotype]) -> str:
    """Which donors have no value, and which rows of the metadata name none: together, they may be a name misspelt."""
    names = list(dict.fromkeys(subject.values()))
    known = {names[k] for own in asked for k in own.donors.tolist()}
    without, others = [name for name in names if name not in known], others_in(given.metadata, list(subject))
    said = []
    if without:
        said = [f"the metadata have no value for {len(without):,} of the donors, which are left out: {few(without)}"]
    if others:
        said.append(f"{len(others):,} rows of the metadata name no table: {few(others)}")
    return "; ".join(said)


def _known(given: Donors, column: str, subject: Mapping[str, str], what: str) -> dict[str, str]:
    """The value of each donor that has one."""
    known: dict[str, str] = {}
    for sample, value in listed_in(given.metadata, column, list(subject), what).items():
        if known.setdefault(subject[sample], value) != value:
            raise InputError(
                f"{subject[sample]}: its samples have {known[subject[sample]]} and {value} in {column}; correct the "
                "metadata"
            )
    if not known:
        raise InputError(
            f"{option('metadata')}: none of {few([*subject])} has a value in {column}; one column must have the names "
            f"of the tables, or of their repertoires; of a table with several donors, {option('individual')} is the "
            "column of their names"
        )
    return known


def _strata(given: Donors, subject: Mapping[str, str], names: Sequence[str]) -> tuple[Counts, list[str]]:
    """The stratum of each donor, and what each is called: donors that agree in all columns have the same."""
    keys = {name: list[str]() for name in names}
    for column in given.strata or ():
        column_of(given.metadata, column, list(subject), "strata")
        for name, value in _known(given, column, subject, "strata").items():
            keys[name].append(value)
    order = {key: k for k, key in enumerate(sorted({tuple(key) for key in keys.values()}))}
    return np.array([order[tuple(keys[name])] for name in names], dtype=np.int64), [", ".join(key) for key in order]


def _labelled(
    name: str, family: Family, names: Sequence[str], is_case: Mapping[str, bool], stratum: Counts, strata: Sequence[str]
) -> Phenotype:
    donors = np.array([k for k, own in enumerate(names) if own in is_case], dtype=np.int64)
    value = np.array([is_case[names[k]] for k in donors.tolist()], dtype=np.int64)
    return Phenotype(name, family, donors, value, stratum[donors], strata)


def _alleles(
    column: str, known: Mapping[str, str], names: Sequence[str], stratum: Counts, strata: Sequence[str]
) -> list[Phenotype]:
    """Each allele that enough donors have, and enough lack."""
    of_donor = {who: {allele.removeprefix("HLA-") for allele in re.split(r"[,;|\s]+", text) if allele}
                for who, text in known.items()}  # fmt: skip
    asked = []
    for allele in sorted(set().union(*of_donor.values())):
        number = sum(allele in own for own in of_donor.values())
        if min(number, len(of_donor) - number) >= FEWEST_OF_ALLELE:
            has = {who: allele in own for who, own in of_donor.items()}
            asked.append(_labelled(allele, "hla", names, has, stratum, strata))
    if not asked:
        raise InputError(
            f"{option('hla', column)}: no allele is in {FEWEST_OF_ALLELE} donors or more, and lacking in as many; "
            f"with fewer, test one with {option('case', {'COLUMN': 'VALUE'})}"
        )
    return asked


def _trend(
    column: str, known: Mapping[str, str], names: Sequence[str], stratum: Counts, strata: Sequence[str]
) -> Phenotype:
    donors = np.array([k for k, own in enumerate(names) if own in known], dtype=np.int64)
    numbers = np.empty(len(donors))
    for place, k in enumerate(donors.tolist()):
        try:
            numbers[place] = float(known[names[k]])
        except ValueError:
            numbers[place] = np.nan
        if not np.isfinite(numbers[place]):
            raise InputError(
                f"{option('trend', column)}: {names[k]} has {known[names[k]]!r}; give a number, or leave it empty"
            )
    return Phenotype(column, "trend", donors, levels_of(numbers), stratum[donors], strata)


def _require_batches(given: Donors, asked: Phenotype, subject: Mapping[str, str], names: Sequence[str]) -> None:
    """Raise InputError if all cases were sequenced together, and not all controls with them."""
    for column in columns_in(given.metadata):
        if column.lower() not in BATCHES or column in (given.strata or ()):
            continue
        batch = _known(given, column, subject, "strata")
        of_cases, of_controls = (
            {batch.get(names[k]) for k in asked.donors[asked.case == side].tolist()} for side in (True, False)
        )
        if len(of_cases) == 1 and asked.case.sum() > 1 and of_controls and of_controls != of_cases:
            apart = not of_cases & of_controls
            remedy = (
                f"no control is of it, so this cohort cannot tell them apart: give controls of the same {column}"
                if apart
                else f"give {option('strata', column)}, which compares donors of one {column}, or samples of several"
            )
            raise InputError(
                f"{asked.name}: all {asked.case.sum()} cases are of one {column} ({of_cases.pop()}), and not all "
                f"controls: its depth, and what contaminated it, would look like the disease; {remedy}"
            )
