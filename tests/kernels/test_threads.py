"""hpcvdj.kernels.threads: parts that are all of the rows, once."""

import time
from pathlib import Path
from threading import Barrier

import numba
import numpy as np
import pytest

import hpcvdj
from hpcvdj.kernels.threads import by_parts, on_threads, parts_of, taken, turns_of


@pytest.fixture(params=[1, 2])
def threads(request):
    before = numba.get_num_threads()
    numba.set_num_threads(min(request.param, before))
    yield numba.get_num_threads()
    numba.set_num_threads(before)


@pytest.mark.parametrize("rows", [0, 1, 7, 512, 513, 100_000])
def test_parts_have_each_row_once(threads, rows):
    parts = parts_of(rows, 512)
    assert [row for first, end in parts for row in range(first, end)] == list(range(rows))
    assert all(first % 512 == 0 for first, _ in parts)
    # A thread that waits for the last part waits for a small one.
    assert len(parts) <= 8 * threads
    assert rows < 100_000 or len(parts) > 4 * threads
    assert sorted(row for part in turns_of(rows) for row in range(*part)) == list(range(rows))
    assert len(turns_of(rows)) <= 8 * threads


def test_few_rows_are_few_parts(threads):
    assert parts_of(512, 512) == [(0, 512)]
    assert parts_of(513, 512) == [(0, 512), (512, 513)]


def test_all_threads_work_at_once(threads):
    meeting = Barrier(threads)
    on_threads(lambda part: meeting.wait(timeout=20), range(threads))


def test_items_take_turns(threads):
    """The largest items, which come first, are in different parts."""
    assert [part[0] for part in turns_of(1000)] == list(range(8 * threads))


def test_each_part_is_called_with_the_arguments(threads):
    out = np.zeros(2_000, dtype=int)

    def add(part, values, out):
        out[part[0] : part[1]] += values[part[0] : part[1]]

    on_threads(add, parts_of(2_000, 10), np.arange(2_000), out)
    assert out.tolist() == list(range(2_000))


@pytest.mark.parametrize("rows", [0, 1, 5_000, 10_001])
def test_values_by_parts(threads, rows):
    a, b = np.arange(rows), np.linspace(0, 1, rows)
    assert by_parts(lambda a, b: a + np.sqrt(b), a, b).tolist() == (a + np.sqrt(b)).tolist()


def test_an_error_in_a_thread_is_raised_and_ends_the_work(threads):
    called = []

    def divided(part):
        called.append(part)
        time.sleep(0.001 * part)
        return 1 // part

    with pytest.raises(ZeroDivisionError):
        on_threads(divided, [1, 0, *[1] * 1_000])
    assert len(called) < 1_000


def test_no_function_is_compiled_three_times():
    """numba compiles what is in its own parallel loops three times; some of its layers forbid threads of Python."""
    sources = sorted(Path(hpcvdj.__file__).parent.rglob("*.py"))
    assert not [path.name for path in sources if "prange" in path.read_text() or "parallel=True" in path.read_text()]


@pytest.mark.parametrize("shape", [(50,), (50, 3), (1, 2)])
@pytest.mark.parametrize("rows", [0, 6, 7, 100])
def test_rows_are_taken_as_an_index_takes_them(threads, shape, rows, monkeypatch):
    """In parts of seven rows, and in fewer."""
    monkeypatch.setattr("hpcvdj.kernels.threads.TAKEN_AT_ONCE", 7)
    rng = np.random.default_rng(rows)
    values, chosen = rng.integers(0, 1 << 40, shape).astype(np.uint64), rng.integers(0, shape[0], rows)
    found = taken(values, chosen)
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values[chosen])
