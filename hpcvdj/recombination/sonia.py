"""Read the linear models of SONIA and soNNia (Sethna et al., PLoS Computational Biology 16:e1008394, 2020).

A folder has a recombination model in IGoR's format, `features.tsv` with the energy of each feature, and `log.txt` with
Z and the limits of the energy.  These programs compute Q = exp(−E) / Z, where E is the sum of the energies of a
junction's features, clipped to the limits.  So ln Q is a sum of weights here, too: the negative energies, and −ln Z for
all junctions.
"""

import math
import re
from collections.abc import Iterable
from pathlib import Path

from hpcvdj.errors import InputError, few, log
from hpcvdj.recombination.germline import V_AND_J
from hpcvdj.recombination.igor import read_model
from hpcvdj.recombination.models import Model, Template
from hpcvdj.recombination.productive import with_factor
from hpcvdj.recombination.selection import RESIDUES, SONIA, SelectionFactor, finite_number, genes_of
from hpcvdj.storage.inputs import read_text

FEATURES, LOG = "features.tsv", "log.txt"

LIMITS = {"min_energy_clip": -5.0, "max_energy_clip": 10.0}
"""The default limits of the energy, which are those of the programs."""

_REMEDY = "copy the folder again, or save the model again with SONIA"

_FORMS = re.compile(rf"l(?P<length>\d+)|a(?P<residue>[{RESIDUES}])(?P<position>-?\d+)|(?P<v>v[^;]*)?;?(?P<j>j[^;]*)?")


def read_sonia(folder: Path) -> Model:
    """Read the recombination model in a folder of SONIA with its selection factor, which has no means.

    The alleles stay as they are in the folder, as Q was inferred with them.  The function warns of alleles that are
    known to be wrong, of features of genes that the model lacks, and of genes of the model without features.
    Raise InputError, with the line, unless the folder has a linear model of a single chain.
    """
    if (folder / "light_chain").is_dir() or (folder / "heavy_chain").is_dir():
        raise InputError(f"{folder}: is a model of paired chains, which hpcvdj does not read; give one of one chain")
    model = read_model(folder, str(folder), published=True)
    v, j = (_by_name(templates, letter) for templates, letter in ((model.v, "v"), (model.j, "j")))
    weights: dict[str, float] = {}
    unknown = []
    for number, feature, energy in _energies(folder / FEATURES):
        names = _names(feature, v, j)
        if names is None:
            raise _error(folder / FEATURES, number, f"feature {feature[:60]!r} is not known")
        if not names:
            unknown.append(feature)
        for name in names:
            if name in weights:
                raise _error(folder / FEATURES, number, f"{feature} is there twice")
            weights[name] = 0.0 - energy
    numbers = _numbers(folder / LOG)
    _warn(folder / FEATURES, model, weights, unknown)
    intercept = -math.log(numbers["Z"])
    smallest, largest = (intercept - numbers[name] for name in reversed(LIMITS))
    facts = {"program": "SONIA", **numbers}
    return with_factor(model, SelectionFactor(weights, intercept, smallest, largest, facts=facts, scheme=SONIA))


def _warn(path: Path, model: Model, weights: dict[str, float], unknown: list[str]) -> None:
    """Warn of features and genes that do not match.  Raise InputError if none match."""
    with_weights = {name for feature in weights if feature[0] in "VJ" for name in feature.split(":")[1:]}
    if unknown and not with_weights:
        raise InputError(f"{path}: the recombination model beside it has none of its genes; {_REMEDY}")
    if unknown:
        log.warning(
            "%s: %s feature(s) are of genes that the recombination model lacks: %s; they take no part",
            path, f"{len(unknown):,}", few(unknown, 3),
        )  # fmt: skip
    for segment in V_AND_J:
        chance = model.p_segment(segment)
        names = {k: genes_of(model.templates(segment)[k].allele) for k in model.contributing(segment)}
        without = [k for k, gene in names.items() if gene not in with_weights]
        if with_weights and without:
            log.warning(
                "%s: no features of %s gene(s) %s, which have %.2f %% of P(%s): Q of these does not depend on the gene",
                path, segment, few(list(dict.fromkeys(names[k] for k in without)), 3),
                100 * float(chance[without].sum()), segment,
            )  # fmt: skip


def _names(feature: str, v: dict[str, list[str]], j: dict[str, list[str]]) -> list[str] | None:
    """Return the names of a feature in hpcvdj; empty if the model lacks its genes, None for an unknown feature.

    v, j  the genes of the model, by their names in features
    """
    form = _FORMS.fullmatch(feature)
    if not feature or form is None:
        return None
    if form["length"]:
        return [f"length:{int(form['length'])}"]
    if form["residue"]:
        # Counted from the right, the last residue is -1.
        position = int(form["position"])
        side, position = ("left", position) if position >= 0 else ("right", -1 - position)
        return [f"{side}:{position}:{form['residue']}"] if position in SONIA.positions else None
    v_genes, j_genes = v.get(form["v"], []), j.get(form["j"], [])
    if form["v"] and form["j"]:
        return [f"V_J:{gene}:{other}" for gene in v_genes for other in j_genes]
    return [f"V:{gene}" for gene in v_genes] + [f"J:{gene}" for gene in j_genes]


def _by_name(templates: Iterable[Template], letter: str) -> dict[str, list[str]]:
    """Return genes by their names in features: v6-2 is TRBV06-02; v14dv4, or v14/d4 in older folders, is TRAV14/DV4."""

    def name(text: str) -> str:
        family, hyphen, number = text.partition("-")
        return f"{letter}{family.lstrip('0')}{hyphen}{number.lstrip('0')}"

    named: dict[str, list[str]] = {}
    after = {gene: gene.lower().partition(letter)[2] for gene in (genes_of(t.allele) for t in templates)}
    for gene, text in after.items():
        named.setdefault(name(text.replace("/", "")), []).append(gene)
    older = {name(text.replace(letter, "")): [gene] for gene, text in after.items() if "/" in text}
    return older | named


def _energies(path: Path) -> list[tuple[int, str, float]]:
    """Return (line number, feature, energy) of each row."""
    head, *lines = read_text(path, "file of features", _REMEDY).splitlines() or [""]
    columns = [column.strip().lower() for column in head.split(",")]
    if columns[:1] == ["feature"] and "energy" not in columns:
        raise InputError(
            f"{path}: has no energies, as of a neural model of soNNia, which hpcvdj does not read; give a linear model "
            "(SONIA), or infer a factor with `hpcvdj infer-selection`"
        )
    if columns[:2] != ["feature", "energy"]:
        raise _error(path, 1, "does not begin with the columns Feature,Energy")
    rows = []
    for number, line in enumerate(lines, start=2):
        feature, *values = line.split(",")
        if line.strip():
            rows.append((number, feature.strip(), _number(path, number, values[0] if values else "")))
    if not rows:
        raise _error(path, 1, "has no features")
    return rows


def _numbers(path: Path) -> dict[str, float]:
    numbers = dict(LIMITS)
    for number, line in enumerate(read_text(path, "file of Z and the energy limits", _REMEDY).splitlines(), start=1):
        name, equals, text = line.partition("=")
        if equals and name.strip() in ("Z", *LIMITS):
            numbers[name.strip()] = _number(path, number, text)
    if numbers.get("Z", 0.0) <= 0 or not numbers["min_energy_clip"] < numbers["max_energy_clip"]:
        raise InputError(f"{path}: has no Z above 0, or no range of energies; {_REMEDY}")
    return numbers


def _number(path: Path, number: int, text: str) -> float:
    value = finite_number(text)
    if value is None:
        raise _error(path, number, f"{text.strip()[:60]!r} is not a number")
    return value


def _error(path: Path, number: int, what: str) -> InputError:
    return InputError(f"{path}, line {number}: {what}; {_REMEDY}")
