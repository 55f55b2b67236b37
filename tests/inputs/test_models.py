"""The models of inputs/models: what make.py makes of the table, and nothing of the table itself."""

import re
import subprocess
import sys

import pytest

from hpcvdj.recombination.igor import FILES, load_model
from hpcvdj.recombination.origin import FACTS, read_facts
from tests.conftest import ROOT

MODELS = ROOT / "inputs" / "models"
NAME = "human_trb_m15"
TABLE = "human_TRB_minervina_M15_CD8.tsv.gz"

NUMBER = re.compile(r"(?<![\w.-])\d+\.?\d*(?:e-\d+)?")


def test_the_folder_is_a_model_and_has_nothing_else():
    model = load_model(MODELS / NAME)
    assert sorted(path.name for path in (MODELS / NAME).iterdir()) == sorted([*FILES, FACTS])
    assert (model.origin.rows, model.origin.purpose) == (2036, read_facts(MODELS / NAME)["purpose"])
    assert model.origin.purpose.startswith("an example of hpcvdj infer, from 2,036 junctions of one donor")
    assert model.p_v.sum() == pytest.approx(1, abs=1e-9)
    assert model.p_dj.sum() == pytest.approx(1, abs=1e-9)
    assert {own.allele: own.segment[-3:] for own in model.j}["TRBJ2-7*02"] == "GTC"


@pytest.mark.exhaustive
@pytest.mark.timeout(240)
def test_the_script_makes_the_model_again(shared_data, tmp_path):
    """Bases and names to the byte, probabilities to 1e-9: another processor may round their last bits differently."""
    words = [sys.executable, MODELS / "make.py", shared_data / TABLE, "-o", tmp_path / NAME]
    subprocess.run(words, check=True, capture_output=True)
    for name in (*FILES, FACTS):
        made, stored = ((folder / NAME / name).read_text() for folder in (tmp_path, MODELS))
        assert NUMBER.sub("", made) == NUMBER.sub("", stored)
        numbers = [[float(number) for number in NUMBER.findall(text)] for text in (made, stored)]
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-9, abs=1e-12)
