"""Generation probabilities against OLGA 1.3.0: stored values, and OLGA itself where it is installed."""

import numpy as np
import pytest

from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.igor import OLGA_FOLDERS, PUBLISHED, load_model, olga_folder
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.symbols import Alphabet, read_alphabet
from tests.kernels.pgen.make_golden import GOLDEN, TEXTS
from tests.kernels.pgen.models import MASKS, Query, ambiguous_queries, queries, values_of
from tests.kernels.pgen.olga_peer import Olga
from tests.loci import exhaustive_but

LARGEST_DIFFERENCE = 1e-12
"""Relative, between OLGA and hpcvdj: the bound that hpcvdj promises.  The largest that was measured is 9.5e-15."""

NUMBERS = ("pgen_nt", "pgen_aa")

OTHERS = [name for name in OLGA_FOLDERS if name not in ("mouse_trb", "human_tra", "human_igh", "mouse_igh")]
"""Models with which ambiguous symbols are compared in slow tests; with IGH, OLGA computes a few sequences a second."""


def model_of(name: str, digest: str | None = None) -> Model:
    """A model of OLGA with its own alleles; skips the test where it is not installed, or another version of it."""
    folder = olga_folder()
    if folder is None or not (folder / OLGA_FOLDERS[name]).is_dir():
        pytest.skip("no models of olga")
    model = load_model(f"{name}{PUBLISHED}")
    if digest not in (None, model.digest):
        pytest.skip("another version of olga's model")
    return model


@pytest.fixture(scope="module")
def golden():
    """The arrays of the stored values."""
    with np.load(GOLDEN) as stored:
        return dict(stored)


def rows_of(golden, name: str) -> tuple[list[Query], np.ndarray]:
    """The queries of a locus and where they are."""
    rows = np.flatnonzero(golden["locus"] == name)
    return [Query(*(str(golden[column][row]) for column in TEXTS[1:])) for row in rows], rows


def differences(values: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Relative differences; infinite where only one of both is zero."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(values == expected, 0.0, np.abs(values - expected) / np.minimum(values, expected))


@pytest.mark.slow
@pytest.mark.parametrize("name", OLGA_FOLDERS)
def test_the_stored_values_of_olga(golden, name):
    """All kinds of calls, nucleotides and amino acids; OLGA's loop over insertions completed."""
    model = model_of(name, str(golden[f"model_{name}"]))
    own, rows = rows_of(golden, name)
    different = differences(values_of(model, own), golden["complete"][rows])
    assert dict(zip(NUMBERS, (different <= LARGEST_DIFFERENCE).all(axis=0), strict=True)) == dict.fromkeys(
        NUMBERS, True
    )


def test_what_the_stored_values_cover(golden):
    """Every locus with every kind of call; values above zero, and zeros."""
    for name in OLGA_FOLDERS:
        own, rows = rows_of(golden, name)
        kinds = {(row.mask, row.origin) for row in own}
        assert {mask for mask, _ in kinds} == set(MASKS)
        assert {origin for _, origin in kinds} == {"drawn", "mutated", "random"}
        assert (golden["complete"][rows] > 0).all(axis=1).sum() >= len(rows) / 2
    assert (golden["complete"] == 0).any(axis=0).all()


def test_where_olga_as_shipped_is_too_small(golden):
    """Only where the number of lengths is 2 (mod 3), by its loop; mouse TRA is one of them."""
    different = differences(golden["shipped"], golden["complete"]) > LARGEST_DIFFERENCE
    assert (golden["shipped"][different] < golden["complete"][different]).all()
    loci = set(golden["locus"][different.any(axis=1)].tolist())
    assert "mouse_tra" in loci
    for name in loci:
        lengths = [len(own.lengths) for own in model_of(name).insertions]
        assert any(number % 3 == 2 for number in lengths)


@pytest.mark.slow
@pytest.mark.olga
@pytest.mark.parametrize("name", exhaustive_but(OLGA_FOLDERS, "human_trb", "human_tra", "mouse_igk"))
def test_olga_itself(name):
    """Junctions that are not stored."""
    model, olga = model_of(name), Olga(name, complete=True)
    rows = queries(model, 12 if name.endswith("igh") else 48, seed=11)
    expected = [
        (olga.nt(row.junction, row.v_call, row.j_call), olga.aa(text, row.v_call, row.j_call))
        for row, text in zip(rows, translate(row.junction for row in rows), strict=True)
    ]
    assert (differences(values_of(model, rows), np.array(expected)) <= LARGEST_DIFFERENCE).all()


ALPHABET = "x: D, E, AAA\n%: x, B, tgg, L\n#: C, W, *\nZ: S, AGA\n"


@pytest.mark.slow
@pytest.mark.olga
@pytest.mark.parametrize("custom", [False, True], ids=["standard", "custom"])
@pytest.mark.parametrize(
    "name", ["mouse_trb", "human_tra", *(pytest.param(other, marks=pytest.mark.exhaustive) for other in OTHERS)]
)
def test_ambiguous_symbols(tmp_path, name, custom):
    """Amino acids, X, B, J, Z, symbols of a custom alphabet that defines one of these; random and hostile ones."""
    path = tmp_path / "alphabet.txt"
    path.write_text(ALPHABET)
    model, alphabet = model_of(name), read_alphabet(path) if custom else Alphabet.of()
    olga = Olga(name, complete=True, alphabet=path if custom else None)
    rows = ambiguous_queries(queries(model, 40, seed=12), "XBJZ" + "x%#" * custom, seed=4)
    expected = [[olga.aa(row.junction, row.v_call, row.j_call)] for row in rows]
    assert np.count_nonzero(expected) > len(rows) / 3
    assert (differences(values_of(model, rows, alphabet), np.array(expected)) <= LARGEST_DIFFERENCE).all()


@pytest.mark.slow
@pytest.mark.olga
@pytest.mark.parametrize("name", OLGA_FOLDERS)
def test_names_mean_what_they_mean_to_olga(name):
    """Every allele, gene, family, and first member of a gene without one."""
    model, olga = model_of(name), Olga(name, complete=False)
    for segment_type in ("V", "J"):
        names = set()
        for template in model.templates(segment_type):
            gene, _, number = template.allele.partition("*")
            names |= {template.allele, gene, gene.partition("-")[0]}
            if "-" not in gene:
                names |= {f"{gene}-1", f"{gene}-1*{number}"}
        assert {own: model.find(segment_type, own) for own in names} == {
            own: olga.alleles(segment_type, own) for own in names
        }
