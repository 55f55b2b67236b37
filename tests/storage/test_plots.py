"""hpcvdj.storage.plots: figures that are complete files, and what is said without matplotlib or networkx."""

import re
import sys

import pytest

from hpcvdj.errors import InputError, installing
from hpcvdj.storage.plots import pyplot, require_networkx, require_plottable, save


def test_without_the_libraries(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "networkx", None)
    needs = f"^{re.escape('the plot needs matplotlib: ' + installing('plots'))}$"
    for check in (pyplot, lambda: require_plottable(tmp_path / "f.png", overwrite=False)):
        with pytest.raises(InputError, match=needs):
            check()
    with pytest.raises(InputError, match=f"^{re.escape('graphs need networkx: ' + installing('graphs'))}$"):
        require_networkx()


def test_networkx():
    assert require_networkx().Graph([(1, 2)]).order() == 2


@pytest.mark.parametrize(
    ("name", "head"), [("f.png", b"\x89PNG"), ("f.PNG", b"\x89PNG"), ("f.svg", b"<?xml"), ("f.Svg", b"<?xml")]
)
def test_a_figure_is_written(tmp_path, name, head):
    target = tmp_path / name
    require_plottable(target, overwrite=False)
    plt = pyplot()
    assert plt.get_backend().lower() == "agg"
    figure = plt.figure(figsize=(2, 1))
    save(figure, target, overwrite=False)
    assert not plt.fignum_exists(figure.number)
    data = target.read_bytes()
    assert data.startswith(head)
    if head.endswith(b"PNG"):
        # 150 dots per inch.
        assert (int.from_bytes(data[16:20]), int.from_bytes(data[20:24])) == (300, 150)
    for again in (require_plottable, lambda path, overwrite: save(plt.figure(), path, overwrite=overwrite)):
        with pytest.raises(InputError, match=f"{name}: exists already"):
            again(target, overwrite=False)
        again(target, overwrite=True)
    plt.close("all")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["f.pdf", "f", "png"])
def test_other_suffixes_are_refused(tmp_path, name):
    with pytest.raises(InputError, match=f"{name}: the name must end in .png or .svg"):
        require_plottable(tmp_path / name, overwrite=True)
