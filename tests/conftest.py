"""What the tests share: paths, and a small random problem with all the hard cases in it."""

from __future__ import annotations

import gc
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared"
GERMLINE = ROOT / "inputs" / "germline" / "mouse_trb_paper.tsv"
TABLES = [path for path in sorted(GERMLINE.parent.glob("*.tsv")) if path.stem != "REFUSED"]
SMALL = ROOT / "inputs" / "mouse_trb" / "small.tsv"

# Tests start Python hundreds of times; without compiled modules each start takes half as long again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_configure():
    # The processes of pytest-xdist would compile the same functions at once.
    import hypothesis
    from numba.core import dispatcher

    # A busy machine is no defect; and what fails here fails everywhere.
    hypothesis.settings.register_profile("busy", deadline=None, derandomize=True)
    hypothesis.settings.load_profile("busy")

    from hpcvdj.kernels.compiling import compile_once

    compile_once(dispatcher)
    # What tests write need not outlast a loss of power, and disks take long.
    os.fsync = lambda descriptor: None
    # What is collected stays until the end: to look for garbage in it takes as long as a fifth of the collection.
    gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    # The examples are in the docstrings of the package; to look for some in the tests takes seconds.
    collectors = yield
    return [collector for collector in collectors if type(collector) is pytest.Module]


def pytest_itemcollected(item):
    # So that `-m "not slow"` leaves both out.
    if item.get_closest_marker("exhaustive"):
        item.add_marker("slow")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    # Before `-m` chooses.
    seen = set()
    for item in items:
        if marker := item.get_closest_marker("slow_others"):
            case = item.nodeid.partition("[")[0], *(repr(item.callspec.params[name]) for name in marker.args)
            if case in seen:
                item.add_marker("slow")
            seen.add(case)


def pytest_runtest_setup(item):
    if item.get_closest_marker("olga") and find_spec("olga") is None:
        pytest.skip("olga is not installed")


@pytest.fixture(scope="session", autouse=True)
def fewer_draws():
    """Commands compare model and table, and junctions and draws, with fewer draws, so that tests are fast.

    Tests of the comparison have all of them; those of the inferred factor say how many they have.
    """
    from hpcvdj.chance import check
    from hpcvdj.inference import selection

    check.DRAWN, selection.FRESH = 20_000, 30_000


@pytest.fixture(scope="session")
def paper_germline():
    """The paper's 20 V, 2 D, 12 J mouse TRB segments."""
    from hpcvdj.recombination.germline import read_germline

    return read_germline(GERMLINE)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real repertoires beside the checkout; tests on them skip where they are absent."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip("no real data beside the checkout")
    return folder


@pytest.fixture(scope="session")
def write_parts():
    """Writes a table as the folder of Parquet that hpcvdj writes, with so many rows in each file."""
    import pyarrow.parquet as pq

    from hpcvdj.storage.folders import atomic_folder, exclusive_folder

    def written(target, table, rows):
        with exclusive_folder(target, overwrite=False), atomic_folder(target, overwrite=False) as folder:
            for number, first in enumerate(range(0, len(table), rows)):
                pq.write_table(table.slice(first, rows), folder / f"part-{number:06}.parquet")

    return written


@pytest.fixture(scope="session")
def on_ranks():
    """Runs a command on a number of ranks: see `Ranks`.

    Three ranks, which is an uneven number, stay for the next command.
    """
    from tests.cli.test_mpiexec import MPIEXEC
    from tests.ranks import Ranks

    if MPIEXEC is None:
        pytest.skip("no mpiexec")
    three = Ranks(MPIEXEC, 3)

    def command(ranks, *words, **options):
        if ranks == three.size:
            return three(*words, **options)
        launched = Ranks(MPIEXEC, ranks)
        try:
            return launched(*words, **options)
        finally:
            launched.end()

    yield command
    three.end()


@pytest.fixture
def launcher_free(monkeypatch) -> None:
    """An environment without the marks of an MPI launcher or of Slurm."""
    for name in list(os.environ):
        if name.startswith(("PMI", "OMPI_", "MPI", "HYDI", "SLURM_", "MV2_", "PALS_")):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def kernels(tmp_path_factory):
    """A folder of kernels compiled for the host, by any worker of this test run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "kernels"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def host(kernels, monkeypatch):
    """The CUDA backend of the motif methods on the host."""
    from tests.kernels.kmers import on_host

    yield on_host.begin(kernels, monkeypatch)
    on_host.forget()
