"""One process compiles a function, the others load it."""

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from numba import njit, types

from hpcvdj.kernels import compiling

FUNCTION = """
import sys
sys.path.insert(0, {folder!r})
{once}
from numba import njit
import sums
sums.total(1.0)
print(sum(sums.total.stats.cache_misses.values()), sum(sums.total.stats.cache_hits.values()))
"""

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

ONCE = "from numba.core import dispatcher; from hpcvdj.kernels.compiling import compile_once; compile_once(dispatcher)"


def started(folder, once):
    program = FUNCTION.format(folder=str(folder), once=once)
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)


def misses(processes):
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert all(process.returncode == 0 for process in processes)
    return sorted(int(output.splitlines()[-1].split()[0]) for output in outputs)


@pytest.mark.slow
def test_processes_that_start_at_once_compile_once(tmp_path):
    (tmp_path / "sums.py").write_text(MODULE)
    assert misses([started(tmp_path, once=ONCE) for _ in range(3)]) == [0, 0, 1]
    assert misses([started(tmp_path, once=ONCE)]) == [0]


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
    assert misses([started(tmp_path, once=ONCE)]) == [1]
    locks = list(tmp_path.rglob("*.lock"))
    assert locks
    with ExitStack() as stack:
        for lock in locks:
            stack.enter_context(compiling._locked(lock))
        begun = time.monotonic()
        assert misses([started(tmp_path, once=ONCE)]) == [0]
        assert time.monotonic() - begun < compiling.PATIENCE / 2


@pytest.mark.slow
def test_asked_for_twice(tmp_path):
    """As by a process that runs two commands."""
    (tmp_path / "sums.py").write_text(MODULE)
    begun = time.monotonic()
    assert misses([started(tmp_path, once=f"{ONCE}; compile_once(dispatcher)")]) == [1]
    assert time.monotonic() - begun < compiling.PATIENCE / 2


def test_a_folder_that_cannot_be_written_keeps_nobody_from_compiling():
    with compiling._locked(Path("/nonexistent/a.lock")):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("lines", ["f(1)", "f(1); f(1.0); f(1)"])
def test_functions_that_are_not_cached_are_compiled(lines):
    program = f"from numba import njit\n{ONCE}\nf = njit(lambda x: x + 1)\n{lines}\nprint(f(2))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "3\n"


@pytest.mark.slow
def test_functions_of_a_type_that_is_gone_are_compiled_again(tmp_path):
    """As after an upgrade: the index of the cache names a class that the module no longer has."""
    old = (
        "from typing import NamedTuple\nfrom numba import njit\n\n\nclass Old(NamedTuple):\n    x: int\n\n\n"
        "@njit(cache=True)\ndef total(x):\n    return x[0] + 1\n"
    )
    (tmp_path / "sums.py").write_text(old)
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {ONCE}; import sums; print(sums.total(ARGUMENT))"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}

    def printed(argument):
        words = [sys.executable, "-c", program.replace("ARGUMENT", argument)]
        return subprocess.run(words, capture_output=True, text=True, timeout=120, env=environment, check=True).stdout

    assert printed("sums.Old(1)") == "2\n"
    (tmp_path / "sums.py").write_text(old.replace("Old", "New"))
    assert printed("sums.New(2)") == "3\n"


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
