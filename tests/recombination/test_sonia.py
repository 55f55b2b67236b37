"""Models of SONIA: Q by a slow reference, hostile folders, the command, and the folders that the packages ship."""

from __future__ import annotations

import math
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import hpcvdj
from hpcvdj.errors import HpcvdjWarning, InputError
from hpcvdj.inference import selection as module
from hpcvdj.recombination.igor import read_model
from hpcvdj.recombination.selection import FILE, RESIDUES, SONIA
from hpcvdj.recombination.sonia import read_sonia
from tests.commands import error_line, hpcvdj_command
from tests.recombination.igor_files import Files, mouse_files, vj_files

PRECISION = 1e-12
"""Relative, of Q: sums of some fifty numbers in 64 bits, in another order."""

LOG = "Z =1.25\nnorm_productive =0.3\nmin_energy_clip =-2.5\nmax_energy_clip =3\nlikelihood_train,test\n0.1,0.2\n"
JOINT = {"v1;j1": 0.4, "v1;j2": -0.7, "v2dv4;j1": 1.1, "v2dv4;j2": 0.05}
ALONE = {"v1": 0.3, "v2dv4": -0.2, "j1": -0.15, "j2": 0.45}


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch):
    monkeypatch.setattr(module, "FRESH", 2_000)


def energies(genes: dict[str, float], depth: int = 25) -> dict[str, float]:
    """Energies of all lengths to 30, of all residues, and of genes."""
    rng = np.random.default_rng(5)
    names = [f"l{length}" for length in range(1, 31)]
    names += [f"a{residue}{place}" for residue in RESIDUES for place in range(-depth, depth)]
    return dict(zip(names, rng.normal(0, 0.3, len(names)).tolist(), strict=True)) | genes


def write(folder: Path, of: dict[str, float], log: str = LOG, files: Files | None = None) -> Path:
    (files or vj_files()).write(folder)
    lines = [f"{name},{energy!r},0.0,0.0,0.0" for name, energy in of.items()]
    (folder / "features.tsv").write_text(
        "\n".join(["Feature,Energy,Marginal_data,Marginal_model,Marginal_gen", *lines, ""])
    )
    (folder / "log.txt").write_text(log)
    return folder


def gene_name(gene: str, letter: str) -> str:
    """What soNNia calls a gene: without locus, allele, slash, and zeros before a number."""
    text = gene.split("*")[0].lower().split(letter, 1)[1].replace("/", "")
    family, hyphen, number = text.partition("-")
    return letter + family.lstrip("0") + hyphen + number.lstrip("0")


def references(folder: Path, draws: list[tuple[str, str, str]]) -> list[float]:
    """ln Q of each junction, by a loop over its letters."""
    lines = (folder / "features.tsv").read_text().strip().split("\n")[1:]
    of = {line.split(",")[0]: float(line.split(",")[1]) for line in lines}
    said = [float(line.split("=")[1]) for line in (folder / "log.txt").read_text().split("\n")[:4]]
    values = []
    for v_call, j_call, text in draws:
        v, j = gene_name(v_call, "v"), gene_name(j_call, "j")
        names = [f"l{len(text)}", v, j, f"{v};{j}"]
        for place, letter in enumerate(text):
            names += [f"a{letter}{place}", f"a{letter}{place - len(text)}"]
        energy = math.fsum(of.get(name, 0.0) for name in names)
        values.append(-min(max(energy, said[2]), said[3]) - math.log(said[0]))
    return values


def compare(folder: Path, draws: list[tuple[str, str, str]]) -> tuple[float, set[float]]:
    """The largest relative difference of Q, and all ln Q of the reference."""
    selection = read_sonia(folder).require_selection()
    genes = sorted({(v, j) for v, j, _ in draws})
    width = max(len(text) for *_, text in draws)
    letters = np.array([list(text.encode().ljust(width, b"\0")) for *_, text in draws], dtype=np.uint8)
    pair = np.array([genes.index((v, j)) for v, j, _ in draws])
    lengths = np.array([len(text) for *_, text in draws])
    logs = selection.log_factor([v for v, _ in genes], [j for _, j in genes], pair, letters, lengths)
    expected = np.array(references(folder, draws))
    return float(np.abs(np.expm1(logs - expected)).max()), set(expected.tolist())


def random_draws(folder: Path, number: int, longest: int = 40) -> list[tuple[str, str, str]]:
    """Junctions of any residues and lengths, with genes of the model."""
    rng, model = np.random.default_rng(8), read_model(folder, published=True)
    v, j = ([template.allele for template in templates] for templates in (model.v, model.j))
    return [
        (rng.choice(v), rng.choice(j), "".join(rng.choice(list(RESIDUES), rng.integers(2, longest))))
        for _ in range(number)
    ]


@pytest.mark.parametrize("genes", [JOINT, ALONE, JOINT | ALONE, {}, {"v1": 2.0}])
def test_q_is_that_of_a_loop(tmp_path, genes):
    folder = write(tmp_path / "m", energies(genes))
    difference, logs = compare(folder, random_draws(folder, 500))
    assert difference < PRECISION
    # The limits of the energy are met, too.
    assert {-3 - math.log(1.25), 2.5 - math.log(1.25)} < logs


def test_positions_count_from_both_ends(tmp_path):
    """The conserved residues are features; a residue may be one from the left and one from the right."""
    folder = write(tmp_path / "m", {"aC0": -0.5, "aF-1": -0.25, "aA1": -0.125, "aA-2": -0.0625, "l3": -0.03125})
    (value,) = compare(folder, [("TRAV1*01", "TRAJ1*01", "CAF")])[1]
    assert value == pytest.approx(0.96875 - math.log(1.25), rel=1e-14)
    assert compare(folder, [("TRAV1*01", "TRAJ1*01", "CAF")])[0] < PRECISION


def test_the_older_name_of_a_gene_with_a_slash(tmp_path):
    of = energies(JOINT)
    folder = write(tmp_path / "m", of)
    older = write(tmp_path / "o", {name.replace("v2dv4", "v2/d4"): energy for name, energy in of.items()})
    assert read_sonia(older).selection.weights == read_sonia(folder).selection.weights


def test_limits_that_are_not_said(tmp_path):
    """The programs take -5 and 10."""
    selection = read_sonia(write(tmp_path / "m", energies(JOINT), "Z =2\nnorm_productive =0.3\n")).selection
    assert (selection.smallest, selection.largest) == pytest.approx((-10 - math.log(2), 5 - math.log(2)))


FEATURES = "Feature,Energy,a,b,c\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("features.tsv", None, "no such file of features"),
        ("features.tsv", "", "line 1: does not begin with the columns Feature,Energy"),
        ("features.tsv", FEATURES, "line 1: has no features"),
        ("features.tsv", f"{FEATURES}l3,0.5,0,0,0\nq7,0.5,0,0,0\n", "line 3: feature 'q7' is not known"),
        ("features.tsv", f"{FEATURES}v1;j1;l3,0.5\n", "line 2: feature 'v1;j1;l3' is not known"),
        ("features.tsv", f"{FEATURES}aB3,0.5\n", "line 2: feature 'aB3' is not known"),
        ("features.tsv", f"{FEATURES}aA50,0.5\n", "line 2: feature 'aA50' is not known"),
        ("features.tsv", f"{FEATURES},0.5\n", "line 2: feature '' is not known"),
        ("features.tsv", f"{FEATURES}l3,much,0,0,0\n", "line 2: 'much' is not a number"),
        ("features.tsv", f"{FEATURES}l3,nan,0,0,0\n", "line 2: 'nan' is not a number"),
        ("features.tsv", f"{FEATURES}l3,inf\n", "line 2: 'inf' is not a number"),
        ("features.tsv", f"{FEATURES}l3\n", "line 2: '' is not a number"),
        ("features.tsv", f"{FEATURES}l3,1\nl4,1\nl3,1\n", "line 4: l3 is there twice"),
        ("features.tsv", f"{FEATURES}v2dv4,1\nv2/d4,1\n", "line 3: v2/d4 is there twice"),
        ("features.tsv", f"{FEATURES}l3,1\nv9;j1,1\n", "the recombination model beside it has none of its genes"),
        ("features.tsv", "Feature,marginal_data\nl3,0.5\n", "a neural model of soNNia, which hpcvdj does not read"),
        ("features.tsv", "a\tb\n", "line 1: does not begin with"),
        ("log.txt", None, "no such file of Z and the energy limits"),
        ("log.txt", "", "has no Z above 0"),
        ("log.txt", "Z =0\n", "has no Z above 0"),
        ("log.txt", "Z =nan\n", "line 1: 'nan' is not a number"),
        ("log.txt", "Z =1\nmin_energy_clip =10\n", "no range of energies"),
        ("model_params.txt", None, "no such model file"),
    ],
)  # fmt: skip
def test_hostile_folders(tmp_path, name, text, said):
    folder = write(tmp_path / "m", energies(JOINT))
    (folder / name).unlink()
    if text is not None:
        (folder / name).write_text(text)
    _, err = hpcvdj_command("models", "from-sonia", folder, "-o", tmp_path / "out", code=2)
    line = error_line(err)
    assert said in line
    assert str(folder / name) in line
    assert not (tmp_path / "out").exists()


def test_paired_models_and_missing_folders_are_refused(tmp_path):
    (tmp_path / "p/heavy_chain").mkdir(parents=True)
    for folder, said in (("p", "is a model of paired chains"), ("nosuch", "no such model file")):
        with pytest.raises(InputError, match=said):
            hpcvdj.model_from_sonia(tmp_path / folder)


def test_genes_that_do_not_meet_are_said(tmp_path, caplog):
    genes = {"v1;j1": 0.4, "v1;j2": -0.7, "v9;j1": 3.0}
    folder = write(tmp_path / "m", energies(genes))
    selection = read_sonia(folder).selection
    unknown, without = (record.getMessage() for record in caplog.records)
    assert "1 feature(s) are of genes that the recombination model lacks: v9;j1; they take no part" in unknown
    assert "no features of V gene(s) TRAV2/DV4, which have 25.00 % of P(V)" in without
    assert {name for name in selection.weights if name[0] == "V"} == {"V_J:TRAV1:TRAJ1", "V_J:TRAV1:TRAJ2"}


@pytest.fixture
def mouse(tmp_path):
    """A folder of a model whose draws are many, and Z with which the mean of Q is about 1."""
    files = mouse_files(1)
    own = read_model(files.write(tmp_path / "plain"))
    v, j = (sorted({gene_name(t.allele, letter) for t in own.templates(letter.upper())}) for letter in "vj")
    rng = np.random.default_rng(2)
    of = {f"{one};{other}": float(rng.normal(0, 0.5)) for one in v for other in j} | {
        "l12": 0.5,
        "aG5": -0.4,
        "aP-6": 0.6,
    }
    return write(tmp_path / "mouse", of, "Z =1\nnorm_productive =0.3\n", files)


@pytest.mark.slow
def test_the_command_writes_a_model(mouse, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FRESH", 40_000)
    out, _ = hpcvdj_command("models", "from-sonia", mouse, "-o", tmp_path / "own")
    assert "18 weights of SONIA, Z 1, ln Q from -10.00 to 5.00" in out
    assert "over 40,000 productive draws from the model" in out
    model = hpcvdj.load_model(tmp_path / "own")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HpcvdjWarning)
        direct = hpcvdj.model_from_sonia(mouse)
    factor = model.selection
    assert factor.scheme is SONIA
    for name in ("weights", "means", "facts", "intercept", "smallest", "largest"):
        assert getattr(factor, name) == getattr(direct.selection, name)
    assert (tmp_path / "own" / FILE).read_text().startswith("#hpcvdj-selection 2\n")
    hpcvdj.write_model(direct, tmp_path / "again")
    assert hpcvdj.load_model(tmp_path / "again").selection.weights == factor.weights
    out, _ = hpcvdj_command("models", "show", tmp_path / "own")
    assert "18 weights of SONIA" in out
    # What the commands take: Q, and draws whose mean of 1 / Q is 1 / the mean of Q.
    table = hpcvdj.generate(model, 3_000, seed=3, productive=True, backend="cpu")
    q = np.array(hpcvdj.pgen(table, model, selection=True, backend="cpu")["q_factor"])
    draws = list(
        zip(table["v_call"].to_pylist(), table["j_call"].to_pylist(), table["junction_aa"].to_pylist(), strict=True)
    )
    log = mouse / "log.txt"
    log.write_text("Z =1\nnorm_productive =0.3\nmin_energy_clip =-5\nmax_energy_clip =10\n")
    assert np.log(q) == pytest.approx(references(mouse, draws), rel=1e-11, abs=1e-12)
    assert q.mean() == pytest.approx(factor.facts["mean_of_q"], rel=5 * q.std() / q.mean() / math.sqrt(3_000))
    _, err = hpcvdj_command("models", "from-sonia", mouse, "-o", tmp_path / "own", code=2)
    assert "--overwrite" in error_line(err)
    hpcvdj_command("models", "from-sonia", mouse, "-o", tmp_path / "own", "--overwrite")
    _, err = hpcvdj_command("models", "from-sonia", mouse, "-o", mouse, "--overwrite", code=2)
    assert (mouse / "features.tsv").exists()


def test_a_mean_far_from_1_is_a_warning(mouse):
    (mouse / "log.txt").write_text("Z =0.125\n")
    with pytest.warns(HpcvdjWarning, match="the mean of Q over 2,000 productive draws from its model is .*, not 1"):
        hpcvdj.model_from_sonia(mouse)


def test_features_of_another_scheme_are_refused(mouse, tmp_path):
    """Also by their digests: a version of the file has its own features."""
    hpcvdj_command("models", "from-sonia", mouse, "-o", tmp_path / "own")
    path = tmp_path / "own" / FILE
    path.write_text(path.read_text().replace("selection 2", "selection 1"))
    with pytest.raises(InputError, match="not a feature and a number"):
        hpcvdj.load_model(tmp_path / "own")
    path.write_text(path.read_text().replace("selection 1", "selection 4"))
    with pytest.raises(InputError, match="update hpcvdj"):
        hpcvdj.load_model(tmp_path / "own")


def shipped() -> list[Path]:
    """The folders of models of one chain that installed packages have; their code is not imported."""
    roots = [
        root for name in ("sonia", "sonnia") if (spec := find_spec(name)) for root in spec.submodule_search_locations
    ]
    return sorted(path.parent for root in roots for path in Path(root).glob("default_models/*/model_params.txt"))


@pytest.mark.skipif(not shipped(), reason="needs SONIA or soNNia: pip install --no-deps sonia sonnia")
@pytest.mark.parametrize("folder", shipped() or [None], ids=str)
def test_the_models_that_the_packages_ship(folder):
    names = {line.split(",")[0] for line in (folder / "features.tsv").read_text().split("\n")}
    draws = random_draws(folder, 300)
    if any("/" in name for name in names):
        # Names of older programs, which SONIA 0.2.2 itself does not find.
        draws = [draw for draw in draws if "/" not in draw[0]]
    assert compare(folder, draws)[0] < PRECISION
