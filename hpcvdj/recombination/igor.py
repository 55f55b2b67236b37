"""Read recombination models in IGoR's format, with the conventions of OLGA (Sethna et al. 2019).

A model is a folder with `model_params.txt` (events, their realisations and their dependencies), `model_marginals.txt`
(probabilities), and the anchors of the V and J genes.
"""

import csv
import hashlib
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import distributions
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hpcvdj.errors import InputError, installing, log
from hpcvdj.recombination.alphabet import reverse_complement
from hpcvdj.recombination.calls import locus_of
from hpcvdj.recombination.corrections import checked
from hpcvdj.recombination.germline import extended_j, extended_v
from hpcvdj.recombination.models import (
    ALLOWED_ERROR,
    Array,
    Insertion,
    Model,
    Template,
    listed,
    require_probabilities,
    stationary,
    vanishing,
)
from hpcvdj.recombination.origin import Origin, read_origin
from hpcvdj.recombination.packaged import model_paths
from hpcvdj.recombination.productive import with_factor
from hpcvdj.recombination.selection import FILE as SELECTION
from hpcvdj.recombination.selection import SelectionFactor, finite_number, read_selection
from hpcvdj.storage.inputs import read_text

PARAMETERS = ("model_params.txt", "model_parms.txt", "models/model_params.txt", "models/model_parms.txt")
"""Paths of the parameters in a model's folder: OLGA and IGoR use different names and folders."""

FILES = (PARAMETERS[0], "model_marginals.txt", "V_gene_CDR3_anchors.csv", "J_gene_CDR3_anchors.csv")
"""The files of a model's folder, by the names in OLGA."""

OLGA_FOLDERS = {
    f"{species}_{locus}": f"{species}_{folder}"
    for species in ("human", "mouse")
    for locus, folder in (
        ("tra", "T_alpha"), ("trb", "T_beta"), ("igh", "B_heavy"), ("igk", "B_kappa"), ("igl", "B_lambda"),
    )
}  # fmt: skip
"""The folders of the models that come with OLGA, by their names in hpcvdj."""

FUNCTIONAL = ("F", "(F)")
"""The functionality codes of IMGT with which a gene recombines."""

MOST_VALUES = 1 << 24
"""The largest number of probabilities of an event: a damaged size is refused before memory is allocated."""

PUBLISHED = ":published"
"""A suffix of a model's name that asks for the alleles as they are in its files."""

_GENES = ("v_choice", "d_gene", "j_choice")

_AXES = {
    "v_choice": [["v_choice"]],
    "j_choice": [["j_choice"], ["v_choice", "j_choice"]],
    "d_gene": [["j_choice", "d_gene"], ["v_choice", "j_choice", "d_gene"]],
    "v_3_del": [["v_choice", "v_3_del"]],
    "j_5_del": [["j_choice", "j_5_del"]],
    "d_5_del": [["d_gene", "d_5_del"]],
    "d_3_del": [["d_gene", "d_5_del", "d_3_del"]],
    "vd_ins": [["vd_ins"]], "dj_ins": [["dj_ins"]], "vj_ins": [["vj_ins"]],
    "vd_dinucl": [["vd_dinucl"]], "dj_dinucl": [["dj_dinucl"]], "vj_dinucl": [["vj_dinucl"]],
}  # fmt: skip
"""The axes that the array of each event may have: the events that it depends on, and the event itself."""


def olga_folder() -> Path | None:
    """Return the models' folder of an installed `olga`, without importing it; None if it is not installed."""
    spec = find_spec("olga")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return Path(folders[0]) / "default_models" if folders else None


def model_folders() -> dict[str, Path]:
    """Return the folders of models by name: those of an installed olga, and those that come with hpcvdj."""
    olga = olga_folder()
    named = {} if olga is None else {name: olga / folder for name, folder in OLGA_FOLDERS.items()}
    return named | model_paths()


def models_of(locus: str) -> list[str]:
    """List the models that have a name and are of a locus, such as `TRB`."""
    return [name for name, folder in model_folders().items() if _locus(folder) == locus]


@cache
def _locus(folder: Path) -> str:
    """Return the locus of a model's first gene; to read the whole model takes a hundred times as long."""
    with model_files(folder)[0].open() as lines:
        return locus_of(next((line[1:] for line in lines if line.startswith("%")), ""))


def load_model(name: str | Path, *, pseudogenes: bool = False) -> Model:
    """Load a model by its name, such as `human_trb`, or from a folder in IGoR's format.

    name         the name of the model, or the path of its folder.  The suffix `:published` keeps alleles that are known
                 to be wrong (`recombination.corrections`) as they are in the files; otherwise they are corrected
    pseudogenes  alleles that are not functional recombine as well if their anchor is known

    If a folder has the name, the folder is read.  InputError names the file, the position and the remedy.
    """
    if not isinstance(name, str | Path):
        raise InputError(f"{name!r} is no model; give a Model, the name of one, or its folder")
    published = str(name).endswith(PUBLISHED) and not Path(name).is_dir()
    model = read_model(model_folder(name), str(name), pseudogenes=pseudogenes, published=published)
    if model.corrected:
        log.info("%s: corrected %s; %s%s keeps what was published", name, listed(model.corrected), name, PUBLISHED)
    return model


def model_folder(name: str | Path) -> Path:
    """Return the folder of a model by its name or path, also with `:published`.  Raise InputError if there is none."""
    text = str(name).removesuffix(PUBLISHED)
    for folder in (Path(name), Path(text)):
        if folder.is_dir():
            return folder
    named = model_folders()
    if text in named:
        return named[text]
    if text in OLGA_FOLDERS:
        raise InputError(f"model {text} is one of olga's; {installing('models')}, or give the folder of a model")
    models = {**OLGA_FOLDERS, **named}
    of_species = [model for model in models if model.startswith(f"{text}_")]
    if of_species:
        raise InputError(f"{text}: a model is of one locus; of {text} there are {', '.join(of_species)}")
    raise InputError(f"{text}: no folder of a model, and no model of that name; there are {', '.join(models)}")


def origin_of(folder: Path) -> Origin:
    """Return the origin of the model in a folder, and its purpose."""
    names = {in_olga: name for name, in_olga in OLGA_FOLDERS.items()}
    if folder.parent != olga_folder() or folder.name not in names:
        return read_origin(folder)
    species, locus = names[folder.name].split("_")
    use = "for most purposes" if locus.startswith("t") else "for junctions without somatic hypermutation"
    version = next((f" {package.version}" for package in distributions(name="olga")), "")
    return Origin(f"published with OLGA{version}: {species} {locus.upper()}, {use}")


def folder_texts(folder: Path) -> dict[str, str]:
    """Return the texts of a model's files, by their names in OLGA.  Raise InputError if one cannot be read."""
    remedy = f"a model's folder has {', '.join(FILES)}"
    return {name: read_text(path, "model file", remedy) for name, path in zip(FILES, model_files(folder), strict=True)}


_Events = dict[str, list[tuple[str, ...]]]
"""The realisations of each event by its nickname, in the order of their indices."""


def model_files(folder: Path) -> list[Path]:
    """Return the paths of a model's `FILES`: models of IGoR have them in subfolders, models of OLGA in one folder."""
    parameters = next((folder / name for name in PARAMETERS if (folder / name).is_file()), folder / FILES[0])
    anchors = ((folder / "ref_genome" / name, folder / name) for name in FILES[2:])
    in_folder = [of_igor if of_igor.is_file() else of_olga for of_igor, of_olga in anchors]
    return [parameters, parameters.with_name(FILES[1]), *in_folder]


def read_model(folder: Path, name: str | None = None, *, pseudogenes: bool = False, published: bool = False) -> Model:
    """Read the model in a folder.  Raise InputError if it lacks a file, or if it is not a model of a kind that we know.

    pseudogenes  alleles that are not functional recombine as well if their anchor is known
    published    alleles that are known to be wrong stay as they are; otherwise they are corrected, and `digest` is that
                 of the corrected files
    """
    files = folder_texts(folder)
    check = checked(files, published=published)
    params, marginals, v_anchors, j_anchors = map(_Lines, model_files(folder), check.texts.values())
    events = _events(params)
    tables, axes = _marginals(marginals, events)
    v = _templates(events["v_choice"], v_anchors, _palindrome(params, events, "v_3_del"), "V", pseudogenes)
    j = _templates(events["j_choice"], j_anchors, _palindrome(params, events, "j_5_del"), "J", pseudogenes)
    empty = np.zeros((0, 0))
    common: dict[str, Any] = {
        "name": name or str(folder), "digest": model_digest(check.texts.values()), "corrected": check.corrected,
        "origin": origin_of(folder), "v": v, "j": j, "v_deletions": tables["v_3_del"], "j_deletions": tables["j_5_del"],
        "error_rate": _error_rate(params),
    }  # fmt: skip
    if "d_gene" not in events:
        model = Model(
            **common, d=(), d_deletions=np.zeros((0, 0, 0)), insertions=(_insertion(tables, "vj"),), p_v=np.zeros(0),
            p_dj=empty, p_vj=tables["v_choice"][:, None] * tables["j_choice"],
        )  # fmt: skip
    else:
        lengths = _palindrome(params, events, "d_5_del"), _palindrome(params, events, "d_3_del")
        d = tuple(_d_template(row[0], row[1], lengths) for row in events["d_gene"])
        p_vdj = None
        if "v_choice" in axes["d_gene"]:
            # As J and D depend on V, the arrays are [V, J] and [V, J, D].
            joint = tables["v_choice"][:, None, None] * tables["j_choice"][:, :, None] * tables["d_gene"]
            p_vdj = joint.transpose(0, 2, 1)
            p_dj = p_vdj.sum(axis=0)
        else:
            p_dj = (tables["d_gene"] * tables["j_choice"][:, None]).T
        model = Model(
            **common, d=d, d_deletions=tables["d_5_del"][:, :, None] * tables["d_3_del"],
            insertions=(_insertion(tables, "vd"), _insertion(tables, "dj")), p_v=tables["v_choice"], p_dj=p_dj,
            p_vj=empty, p_vdj=p_vdj,
        )  # fmt: skip
    for template in (*model.v, *model.d, *model.j):
        if template.extended.strip("ACGT"):
            raise InputError(
                f"{params.path}: {template.allele} has letters other than A, C, G, T in the junction; correct the file"
            )
    require_probabilities(model)
    selection = _selection(folder, model_digest(files.values()), check.corrected)
    model = replace(model, faults=vanishing(model) | check.faults)
    return model if selection is None else with_factor(model, selection)


def _selection(folder: Path, digest: str, corrected: Mapping[str, str]) -> SelectionFactor | None:
    """Return the selection factor in a folder whose files have this digest, and warn if the model was corrected."""
    path = folder / SELECTION
    if not path.exists():
        return None
    if corrected:
        log.warning(
            "%s: was inferred without the corrections of this model; infer it again with `hpcvdj infer-selection`, or "
            "name the model %s%s", path, folder, PUBLISHED,
        )  # fmt: skip
    return read_selection(path, digest)


@dataclass(frozen=True)
class _Lines:
    """The non-empty lines of a file, and errors that name a line."""

    path: Path
    text: str

    def __iter__(self):  # type: ignore[no-untyped-def]
        return ((number, line.strip()) for number, line in enumerate(self.text.splitlines(), 1) if line.strip())

    def error(self, number: int, what: str) -> InputError:
        return InputError(f"{self.path}, line {number}: {what}; give a model as IGoR or OLGA writes it")


def model_digest(texts: Iterable[str]) -> str:
    """Return the SHA-256 of the digests of a model's files, which are in the order of `FILES`."""
    digests = (hashlib.sha256(text.encode()).hexdigest() for text in texts)
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def _events(lines: _Lines) -> _Events:
    realisations: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
    section, nickname = "", ""
    for number, line in lines:
        if line[0] == "@":
            section = line[1:]
        elif section == "Event_list" and line[0] == "#":
            nickname = line.split(";")[-1]
            if nickname not in _AXES:
                raise lines.error(number, f"event {nickname!r} is not known")
            realisations[nickname] = []
        elif section == "Event_list" and line[0] == "%":
            *values, index = line[1:].split(";")
            if not nickname or not index.strip().isdecimal():
                raise lines.error(number, "a realisation without an event or an index")
            if len(values) != (2 if nickname in _GENES else 1):
                raise lines.error(number, f"not a realisation of {nickname}")
            # The index of a realisation counts, not the order of lines.
            realisations[nickname].append((int(index), tuple(value.strip() for value in values)))
    events: _Events = {}
    for nickname, rows in realisations.items():
        rows.sort()
        if [index for index, _ in rows] != list(range(len(rows))):
            raise InputError(f"{lines.path}: the indices of {nickname} are not 0 … {len(rows) - 1}; correct the file")
        if not rows:
            raise InputError(f"{lines.path}: {nickname} has no realisations; copy the model again")
        events[nickname] = [values for _, values in rows]
        order = [values[0] for values in events[nickname]]
        fixed = list("ACGT") if nickname.endswith("dinucl") else [str(index) for index in range(len(rows))]
        if nickname.endswith(("ins", "dinucl")) and order != fixed:
            raise InputError(
                f"{lines.path}: {nickname} has realisations {', '.join(order)}, not {', '.join(fixed)}; correct it"
            )
    others = ("vj_",) if "d_gene" in events else ("d", "vd_")
    missing = {name for name in _AXES if not name.startswith(others)} ^ set(events)
    if missing:
        raise InputError(f"{lines.path}: has not the events of a VDJ or a VJ model ({', '.join(sorted(missing))})")
    return events


def _marginals(lines: _Lines, events: _Events) -> tuple[dict[str, Array], dict[str, list[str]]]:
    """Return the probabilities of each event, and the names of the array's axes."""
    tables: dict[str, Array] = {}
    axes: dict[str, list[str]] = {}
    name = ""
    where: tuple[int, ...] = ()
    for number, line in lines:
        try:
            if line[0] == "@":
                name = line[1:]
                if name not in events:
                    raise ValueError(f"event {name!r} is not in {FILES[0]}")
            elif line.startswith("$Dim"):
                sizes = [int(size) for size in line[5:-1].split(",")]
                if math.prod(sizes) > MOST_VALUES:
                    raise ValueError(f"more than {MOST_VALUES:,} values")
                tables[name] = np.full(sizes, np.nan)
            elif line[0] == "#":
                parents = re.findall(r"\[([^,\]]+),(\d+)\]", line)
                names = [*(parent for parent, _ in parents), name]
                if axes.setdefault(name, names) != names:
                    raise ValueError(f"{name} has other parents than above")
                where = tuple(int(index) for _, index in parents)
            elif line[0] == "%":
                axes.setdefault(name, [name])
                values = np.array([float(value) for value in line[1:].split(",")])
                row = tables[name][where if len(axes[name]) > 1 else ...]
                if row.shape != values.shape:
                    raise ValueError(f"{len(values)} values where there is place for {row.shape}")
                if not (np.isfinite(values) & (values >= 0)).all():
                    raise ValueError("values that are no probabilities")
                row[...] = values
        except (ValueError, IndexError, KeyError) as error:
            raise lines.error(number, str(error)) from None
    for event in events:
        if event not in tables or event not in axes or np.isnan(tables[event]).any():
            raise InputError(f"{lines.path}: lacks probabilities of {event}; copy the model again")
        if axes[event] not in _AXES[event]:
            condition = ", ".join(axes[event][:-1]) or "nothing"
            raise InputError(
                f"{lines.path}: {event} depends on {condition}, which is not supported; infer another model"
            )
        sizes = [16 if axis.endswith("dinucl") else len(events[axis]) for axis in axes[event]]
        if list(tables[event].shape) != sizes:
            raise InputError(f"{lines.path}: {event} has {tables[event].shape} values, {FILES[0]} says {tuple(sizes)}")
        if event.endswith("dinucl"):
            for base, total in zip("ACGT", tables[event].reshape(4, 4).sum(axis=1), strict=True):
                if abs(total - 1) > ALLOWED_ERROR:
                    raise InputError(
                        f"{lines.path}: {event} after {base} adds up to {total:.6g}, not 1; correct the file"
                    )
    if "d_gene" in events and ("v_choice" in axes["d_gene"]) != ("v_choice" in axes["j_choice"]):
        raise InputError(f"{lines.path}: of j_choice and d_gene, only one depends on V; infer another model")
    if "d_gene" not in events and "v_choice" not in axes["j_choice"]:
        tables["j_choice"] = np.tile(tables["j_choice"], (len(events["v_choice"]), 1))
    return tables, axes


def _anchors(lines: _Lines) -> dict[str, tuple[int, str]]:
    """Return (position of the anchor codon, function) by the name of the gene."""
    anchors = {}
    number = 1
    try:
        # OLGA writes commas, IGoR semicolons.
        delimiter = ";" if ";" in lines.text.partition("\n")[0] else ","
        for number, row in enumerate(csv.reader(io.StringIO(lines.text), delimiter=delimiter), 1):
            if number > 1 and row:
                gene = row[0].strip()
                if gene in anchors:
                    raise InputError(f"{lines.path}, line {number}: {gene} is listed twice; keep one row of it")
                anchors[gene] = int(row[1]), row[2].strip()
    except (IndexError, ValueError, csv.Error):
        raise lines.error(number, "not a gene, its anchor and its function") from None
    return anchors


def _error_rate(lines: _Lines) -> float:
    """Return the rate of errors that are equally frequent everywhere; 0 if the file has no such rate."""
    for (_, line), (_, text) in pairwise(lines):
        rate = finite_number(text) if line == "#SingleErrorRate" else None
        if rate is not None and 0 <= rate < 1:
            return rate
    return 0.0


def _palindrome(lines: _Lines, events: _Events, event: str) -> int:
    """Return the largest number of P-nucleotides at an end, max_p: deletions are −max_p, −max_p + 1, …"""
    texts = [values[0] for values in events[event]]
    least = int(texts[0]) if texts[0].removeprefix("-").isdecimal() else 1
    if least > 0 or texts != [str(value) for value in range(least, least + len(texts))]:
        raise InputError(f"{lines.path}: the deletions of {event} are not consecutive numbers; correct the file")
    return -least


def _templates(
    alleles: list[tuple[str, ...]], lines: _Lines, max_p: int, segment_type: str, pseudogenes: bool
) -> tuple[Template, ...]:
    """Return the V alleles from the anchor on, or the J alleles up to it; `lines` are those of the anchors file."""
    anchors = _anchors(lines)
    templates = []
    for allele, text in alleles:
        sequence = text.upper()
        anchor, function = anchors.get(allele, (0, ""))
        segment = ""
        inside = anchor + 3 <= len(sequence)
        if anchor > 0 and (function in FUNCTIONAL or (pseudogenes and inside)):
            if not inside:
                raise InputError(
                    f"{lines.path}: the anchor {anchor} of {allele} is not within its {len(sequence)} bases; correct "
                    "the file"
                )
            segment = sequence[anchor:] if segment_type == "V" else sequence[: anchor + 3]
        extended = (extended_v if segment_type == "V" else extended_j)(segment, max_p)
        p5 = 0 if segment_type == "V" else len(extended) - len(segment)
        templates.append(Template(allele, sequence, segment, extended, p5, function, 0 if segment else max(anchor, 0)))
    if not anchors:
        raise InputError(f"{lines.path}: lists no gene, so no junction could be made; copy the model again")
    return tuple(templates)


def _d_template(allele: str, text: str, max_p: Sequence[int]) -> Template:
    sequence = text.upper()
    left, right = max_p
    if len(sequence) < min(max_p):
        left = right = len(sequence)
    extended = reverse_complement(sequence[:left]) + sequence
    extended += reverse_complement(extended[max(0, len(extended) - right) :])
    return Template(allele, sequence, sequence, extended, min(left, len(sequence)))


def _insertion(tables: dict[str, Array], where: str) -> Insertion:
    counts = tables[f"{where}_dinucl"].reshape(4, 4).T
    totals = counts.sum(axis=0)
    transitions = counts / np.where(totals > 0, totals, 1)
    return Insertion(np.trim_zeros(tables[f"{where}_ins"], "b"), transitions, stationary(transitions))
