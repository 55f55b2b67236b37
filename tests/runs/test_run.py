"""hpcvdj.runs.run on one rank: what it locks, how work is left, which failures it passes on."""

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

from hpcvdj.errors import InputError, MachineError, StoppedError
from hpcvdj.runs.ranks import starting
from hpcvdj.runs.run import Run


def test_a_target_is_checked_and_locked(tmp_path):
    run = Run().to(tmp_path / "out.h5")
    with run.exclusive() as target:
        assert target == tmp_path / "out.h5"
        with pytest.raises(InputError, match="another run is writing it"), run.exclusive():
            pass
    target.write_text("x")
    with pytest.raises(InputError, match="exists already"), run.exclusive():
        pass
    with pytest.raises(InputError, match="is an input of this run"), run.to(target, overwrite=True).exclusive(target):
        pass
    assert os.listdir(tmp_path) == ["out.h5"]


def test_a_signal_between_two_items_leaves_the_rest():
    run, done = Run(), []

    def work(item):
        done.append(item)
        if item == 2:
            run.request.name = "SIGTERM"

    with pytest.raises(StoppedError, match="SIGTERM: stopped with items saved") as caught:
        run.each(range(1, 5), work, "with items saved")
    assert done == [1, 2]
    assert caught.value.on_every_rank


def test_a_signal_during_the_last_item_finds_nothing_left():
    run = Run()
    run.each([1], lambda item: setattr(run.request, "name", "SIGTERM"), "")


def test_a_signal_within_an_item_or_while_reading_is_heard():
    run, read = Run(), []

    def items():
        for number in range(3):
            read.append(number)
            run.request.name = "SIGUSR1"
            run.raise_if_stopping()
            yield number

    with pytest.raises(StoppedError, match="SIGUSR1"):
        run.each(items(), lambda item: None, "")
    assert read == [0]


@pytest.fixture
def threads(monkeypatch):
    return lambda number: monkeypatch.setattr(starting, "threads", number)


def test_what_is_left_of_an_item_is_done_while_the_next_is_begun(threads):
    threads(2)
    begun, done = threading.Event(), []

    def work(item):
        if item == 2:
            begun.set()

        def rest():
            # Never set if the second item waited for the rest of the first.
            assert begun.wait(30)
            assert threading.get_ident() != here
            done.append(item)

        return rest

    here = threading.get_ident()
    Run().each([1, 2], work, "")
    assert done == [1, 2]


def test_one_thread_does_what_is_left_of_an_item_before_the_next(threads):
    threads(1)
    steps, here = [], threading.get_ident()

    def work(item):
        steps.append(f"begins {item}")
        return lambda: steps.append(f"ends {item}" if threading.get_ident() == here else "elsewhere")

    Run().each([1, 2], work, "")
    assert steps == ["begins 1", "ends 1", "begins 2", "ends 2"]


@pytest.mark.parametrize("number", [1, 2])
def test_a_run_that_stops_ends_what_it_has_begun(threads, number):
    threads(number)
    run, saved = Run(), []

    def work(item):
        if item == 2:
            run.request.name = "SIGTERM"
        return lambda: saved.append(item)

    with pytest.raises(StoppedError):
        run.each(range(1, 5), work, "")
    assert saved == [1, 2]


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("last", [1, 3])
def test_a_failure_in_what_is_left_of_an_item_is_everybodys(threads, number, last):
    threads(number)

    def work(item):
        def rest():
            if item == 1:
                raise InputError("disk full")

        return rest

    with pytest.raises(InputError, match="disk full") as caught:
        Run().each(range(1, 1 + last), work, "")
    assert caught.value.on_every_rank


def test_the_failure_of_an_item_is_everybodys():
    def work(item):
        raise MachineError("no space")

    with pytest.raises(MachineError, match="no space") as caught:
        Run().each([1, 2], work, "")
    assert caught.value.on_every_rank


def test_other_exceptions_are_not_hidden():
    def work(item):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Run().each([1], work, "")
    run = Run()
    run.request.name = "SIGTERM"
    run.raise_if_stopping()  # outside of `each` there is nothing to leave


def test_work_on_root_can_be_stopped_too():
    run = Run()
    assert run.root_works(lambda: 5, "") == 5
    with pytest.raises(InputError) as caught:
        run.root_works(lambda: (_ for _ in ()).throw(InputError("bad")), "")
    assert caught.value.on_every_rank
    run.request.name = "SIGTERM"
    with pytest.raises(StoppedError, match="stopped while writing"):
        run.root_works(run.raise_if_stopping, "while writing")


def test_signals_are_noted_once_work_has_begun():
    run = Run()
    with run.request:
        with pytest.raises(StoppedError, match="SIGTERM: stopped before any result"):
            os.kill(os.getpid(), signal.SIGTERM)
        run.request.name = ""
        run.request.begin()
        assert not run.request
        os.kill(os.getpid(), signal.SIGTERM)
        assert run.request
        assert run.request.name == "SIGTERM"
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_one_rank_has_what_it_shares():
    run, numbers = Run(), np.arange(3)
    assert run.broadcast(numbers) is numbers
    assert (run.gather(5), run.gather_everywhere(5), run.exchange([5])) == ([5], [5], [5])
    assert run.sum(numbers).tolist() == [0, 1, 2]
    assert run.slowest(1.5, 0.5) == [1.5, 0.5]
    assert run.from_root(lambda: "x") == run.on_root(lambda: "x") == "x"


def test_items_are_dealt_to_one_rank():
    def work(item, run):
        if item == 2:
            error = InputError("no rows")
            error.on_every_rank = True
            raise error
        return item

    told = []
    done, refused = Run().deal(range(4), work, [5, 6, 7, 8], told.append)
    assert done == [(0, 0), (1, 1), (3, 3)]
    assert [(item, str(error)) for item, error in refused] == [(2, "no rows")]
    assert list(map(str, told)) == ["no rows"]
    with pytest.raises(InputError, match="no rows"):
        Run().deal([2], work, [5], told.append)


def test_a_copy_for_a_target_shares_ranks_and_signals(tmp_path):
    run = Run()
    copy = run.to(tmp_path / "a.h5", resume=True)
    assert (copy.request, copy.world) == (run.request, run.world)
    assert (run.target, run.resume, copy.resume) == (None, False, True)


def test_a_run_keeps_what_it_makes_once_if_it_is_asked_to():
    made = []

    def make(value):
        def work():
            made.append(value)
            return [value]

        return work

    run = Run()
    assert run.once("a", 1, make("x")) == run.once("a", 1, make("x")) == ["x"]
    assert made == ["x", "x"]
    made.clear()
    keeping = run.keeping()
    first = keeping.once("a", 1, make("x"))
    assert keeping.to(Path("file")).once("a", 1, make("y")) is first
    assert keeping.once("b", 1, make("z")) == ["z"]
    assert keeping.once("a", 2, make("v")) == ["v"]
    assert keeping.once("a", 1, make("w")) == ["w"], "one value of each, the last"
    assert made == ["x", "z", "v", "w"]
    assert keeping.alone().once("a", 1, make("u")) == ["w"]
    assert run.once("a", 1, make("u")) == ["u"]
    assert keeping.kept("a", 1) == ["w"]
    assert keeping.kept("a", 2) is run.kept("a", 1) is None
    made.clear()
    # Ranks that have nothing must not make it again, as others would not take part.
    assert keeping.once("d", 1, lambda: made.append("nothing")) is keeping.once("d", 1, make("s")) is None
    assert made == ["nothing"]
    with pytest.raises(ZeroDivisionError):
        keeping.once("c", 1, lambda: 1 // 0)
    assert keeping.once("c", 1, make("t")) == ["t"]
