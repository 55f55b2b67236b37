"""hpcvdj.chance.first_rows: tables of mutated B cells are named, others are not."""

import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.chance.first_rows import mutated_rows
from hpcvdj.recombination.igor import load_model
from hpcvdj.repertoires.table import table_at, table_of
from tests.asked import warnings_said
from tests.kernels.pgen.problems import small_model


class OfB:
    """What is asked of a model of B cells."""

    v = [type("Template", (), {"allele": "IGHV1-2*02"})]  # noqa: RUF012


def lines(identity, model=OfB):
    return list(mutated_rows([table_of(pa.table({"v_identity": identity}))], model))


@pytest.mark.parametrize(
    ("identity", "said"),
    [
        ([1.0] * 80 + [0.9] * 20, "20 % of the first 100"),
        (["100"] * 80 + ["93.5"] * 20, "20 % of the first 100"),
        (["1.0"] * 80 + ["0.979"] * 20 + ["", "nan", "?", "-1", "0.9x", "1,0"] * 10 + [None], "20 % of the first 100"),
        ([1.0] * 80 + [0.98] * 20, ""),
        ([1.0] * 995 + [0.9] * 100, ""),  # 9 %
        ([0.9] * 3, "100 % of the first 3 rows"),
        ([0.9], ""),
        (["x"], ""),
        ([], ""),
    ],
)
def test_the_share_of_mutated_rows(identity, said):
    found = lines(identity)
    assert [said in line for line in found] == [True] * bool(said)


def test_other_tables_are_not_named(tmp_path):
    mutated = [0.9] * 100
    assert not lines(mutated, small_model())
    assert not list(mutated_rows([table_of(pa.table({"junction": ["TGT"] * 100}))], OfB))
    path = tmp_path / "b.tsv"
    path.write_text("v_identity\tjunction\n" + "0.91\tTGT\n" * 50)
    (line,) = mutated_rows([table_at(path)], OfB)
    assert line.startswith(f"{path}: 100 % of the first 50 rows have a V gene that is mutated in more than 2 %")


@pytest.mark.olga
@pytest.mark.slow
def test_every_command_says_so():
    model = load_model("human_igh")
    table = hpcvdj.generate(model, 300, seed=2, productive=True)
    for share, said_of in ((0.99, 0), (0.9, 1)):
        rows = table.append_column("v_identity", pa.array([share] * len(table)))
        with warnings_said() as said:
            hpcvdj.pgen(rows, model, backend="cpu")
        assert sum("(v_identity)" in line for line in said) == said_of
