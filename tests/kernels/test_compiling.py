"""One process compiles a function, the others load it."""

import contextlib
import io
import multiprocessing
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from numba import njit, types
from numba.core import dispatcher

from hpcvdj.kernels import compiling

MODULE = """
from numba import njit


@njit(cache=True)
def part(x):
    for k in range(10):
        x += k * x
    return x


@njit(cache=True)
def total(x):
    return part(x) + part(2 * x)
"""

FRESH = multiprocessing.get_context("forkserver")
FRESH.set_forkserver_preload([__name__])
"""Processes that have what this module imports: to import numba takes longer than what they do."""


def _total(folder, times, connection):
    """What compiling `sums.total` missed and hit in numba's cache, with functions that are compiled only once."""
    sys.path.insert(0, str(folder))
    for _ in range(times):
        compiling.compile_once(dispatcher)
    import sums

    sums.total(1.0)
    stats = sums.total.stats
    connection.send((sum(stats.cache_misses.values()), sum(stats.cache_hits.values())))


def _printed(program, connection):
    compiling.compile_once(dispatcher)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(program, {"__name__": "__main__"})
    connection.send(out.getvalue())


def started(function, *arguments):
    own, others = FRESH.Pipe(duplex=False)
    process = FRESH.Process(target=function, args=(*arguments, others))
    process.start()
    others.close()
    return process, own


def ended(process, connection):
    """What a process sent before it ended well."""
    with connection:
        sent = connection.recv() if connection.poll(120) else None
    process.join(120)
    assert process.exitcode == 0
    return sent


def misses(processes):
    return sorted(ended(*each)[0] for each in processes)


@pytest.mark.slow
def test_processes_that_start_at_once_compile_once(tmp_path):
    (tmp_path / "sums.py").write_text(MODULE)
    assert misses([started(_total, tmp_path, 1) for _ in range(3)]) == [0, 0, 1]
    assert misses([started(_total, tmp_path, 1)]) == [0]


def test_a_process_waits_for_another_no_longer_than_its_patience(tmp_path, monkeypatch):
    monkeypatch.setattr(compiling, "PATIENCE", 0.2)
    with compiling._locked(tmp_path / "a.lock"):
        begun = time.monotonic()
        with compiling._locked(tmp_path / "a.lock"):
            assert time.monotonic() - begun >= 0.2
    begun = time.monotonic()
    with compiling._locked(tmp_path / "a.lock"):
        assert time.monotonic() - begun < 0.2


@pytest.mark.slow
def test_what_is_compiled_is_loaded_while_another_process_holds_the_lock(tmp_path):
    """Ranks waited for one another to load each function: ten seconds of 32 ranks."""
    (tmp_path / "sums.py").write_text(MODULE)
    assert misses([started(_total, tmp_path, 1)]) == [1]
    locks = list(tmp_path.rglob("*.lock"))
    assert locks
    with ExitStack() as stack:
        for lock in locks:
            stack.enter_context(compiling._locked(lock))
        begun = time.monotonic()
        assert misses([started(_total, tmp_path, 1)]) == [0]
        assert time.monotonic() - begun < compiling.PATIENCE / 2


@pytest.mark.slow
def test_asked_for_twice(tmp_path):
    """As by a process that runs two commands."""
    (tmp_path / "sums.py").write_text(MODULE)
    begun = time.monotonic()
    assert misses([started(_total, tmp_path, 2)]) == [1]
    assert time.monotonic() - begun < compiling.PATIENCE / 2


def test_a_folder_that_cannot_be_written_keeps_nobody_from_compiling():
    with compiling._locked(Path("/nonexistent/a.lock")):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("lines", ["f(1)", "f(1); f(1.0); f(1)"])
def test_functions_that_are_not_cached_are_compiled(lines):
    program = f"from numba import njit\nf = njit(lambda x: x + 1)\n{lines}\nprint(f(2))"
    assert ended(*started(_printed, program)) == "3\n"


@pytest.mark.slow
def test_functions_of_a_type_that_is_gone_are_compiled_again(tmp_path):
    """As after an upgrade: the index of the cache names a class that the module no longer has."""
    old = (
        "from typing import NamedTuple\nfrom numba import njit\n\n\nclass Old(NamedTuple):\n    x: int\n\n\n"
        "@njit(cache=True)\ndef total(x):\n    return x[0] + 1\n"
    )
    (tmp_path / "sums.py").write_text(old)
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import sums; print(sums.total(ARGUMENT))"

    def printed(argument):
        return ended(*started(_printed, program.replace("ARGUMENT", argument)))

    assert printed("sums.Old(1)") == "2\n"
    # Python sees by its size that a file changed within the same second.
    (tmp_path / "sums.py").write_text(old.replace("Old", "Newer"))
    assert printed("sums.Newer(2)") == "3\n"


def test_a_number_that_is_written_where_a_function_is_called_compiles_it_no_second_time():
    """`_codon` was compiled for depth 0, with which its caller begins, and for any depth: 3.5 s each."""

    def power(x, exponent):
        return x**exponent

    power.__module__ = "hpcvdj.powers"
    power = njit(power)

    @njit
    def powers(x):
        total, exponent = 0.0, 0
        while exponent < 3:
            total += power(x, exponent)
            exponent += 1
        return total + power(x, 3)

    assert powers(2.0) == 15.0
    assert power.signatures == [(types.float64, types.int64)]


def test_functions_of_others_keep_their_literals():
    """Their code may depend on them."""
    power = njit(lambda x, exponent: x**exponent)
    assert njit(lambda x: power(x, 3))(2.0) == 8.0
    assert power.signatures == [(types.float64, types.literal(3))]


def test_functions_without_a_module_are_compiled():
    """Such as those that a notebook's extension defines by `exec`."""
    space = {}
    exec("from numba import njit\nf = njit(lambda x: x + 1)", space)
    space["f"].__module__ = None
    assert space["f"](1) == 2
