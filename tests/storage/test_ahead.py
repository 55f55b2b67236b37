"""hpcvdj.storage.ahead: items are made and worked on beside each other, in their order."""

import threading

import pytest

from hpcvdj.errors import InputError
from hpcvdj.storage import ahead as module
from hpcvdj.storage.ahead import ahead, import_ahead, in_threads


def test_the_next_item_is_made_while_one_is_worked_on():
    began = [threading.Event() for _ in range(4)]

    def items():
        for number, event in enumerate(began):
            event.set()
            yield number

    seen = []
    for number in ahead(items()):
        # Never set if the source waited for this item to be done.
        assert number == 3 or began[number + 1].wait(30)
        seen.append(number)
    assert seen == [0, 1, 2, 3]


def test_what_goes_wrong_ahead_is_raised_in_its_place():
    def items():
        yield 1
        raise InputError("the second item")

    seen = []
    with pytest.raises(InputError, match="the second item"):
        seen.extend(ahead(items()))
    assert seen == [1]
    assert list(ahead([])) == []


def test_items_are_made_here_and_worked_on_side_by_side():
    here, made = threading.get_ident(), []
    both = threading.Barrier(2, timeout=30)

    def items():
        for number in range(6):
            assert threading.get_ident() == here
            made.append(number)
            yield number

    def work(number):
        assert threading.get_ident() != here
        # Two items are worked on at once, or this fails.
        both.wait()
        return 10 * number

    seen = []
    for value in in_threads(work, items()):
        seen.append(value)
        assert len(made) <= len(seen) + 2, "no more are made than threads can begin"
    assert seen == [0, 10, 20, 30, 40, 50]


def test_what_goes_wrong_in_a_thread_is_raised_in_its_place():
    def work(number):
        if number == 2:
            raise InputError("the third item")
        return number

    seen = []
    with pytest.raises(InputError, match="the third item"):
        seen.extend(in_threads(work, range(9)))
    assert seen == [0, 1]
    assert list(in_threads(work, [])) == []


def test_modules_are_imported_ahead(monkeypatch):
    began, here = threading.Event(), threading.get_ident()

    def load(name):
        assert threading.get_ident() != here
        began.set()
        raise ImportError(name)

    monkeypatch.setattr(module, "import_module", load)
    import_ahead("some_module")
    assert began.wait(30)


def test_without_further_threads_items_are_worked_on_here():
    here = threading.get_ident()
    assert list(in_threads(lambda number: (number, threading.get_ident()), range(3), threads=0)) == [
        (number, here) for number in range(3)
    ]
