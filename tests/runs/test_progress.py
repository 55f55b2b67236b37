"""hpcvdj.runs.progress: what people read while work goes on."""

import logging
import sys
import time
from types import SimpleNamespace

import pytest

from hpcvdj.runs import progress


def test_slow_work_is_told(monkeypatch, caplog):
    monkeypatch.setattr(progress, "PATIENT_SECONDS", 0.05)
    caplog.set_level(logging.INFO)
    with progress.told_if_slow("slow work", shown=True):
        time.sleep(0.5)
    with progress.told_if_slow("work of others", shown=False):
        time.sleep(0.5)
    assert caplog.messages == ["slow work"]


def test_slow_work_is_told_again(monkeypatch, caplog):
    monkeypatch.setattr(progress, "PATIENT_SECONDS", 0.05)
    monkeypatch.setattr(progress, "AGAIN_SECONDS", 0.2)
    caplog.set_level(logging.INFO)
    with progress.told_if_slow("slow work, for ever", shown=True):
        time.sleep(0.6)
    told = len(caplog.messages)
    assert told >= 2
    assert caplog.messages[:2] == ["slow work, for ever", "slow work: 0 s so far"]
    time.sleep(0.4)
    assert len(caplog.messages) == told


def test_fast_work_is_not(monkeypatch, caplog):
    monkeypatch.setattr(progress, "PATIENT_SECONDS", 0.3)
    caplog.set_level(logging.INFO)
    with progress.told_if_slow("fast work", shown=True):
        pass
    time.sleep(0.6)
    assert caplog.messages == []


def test_progress_is_told_early_then_seldom(monkeypatch, caplog):
    monkeypatch.setattr(progress, "PATIENT_SECONDS", 0.05)
    caplog.set_level(logging.INFO)
    with progress.Progress(10, "rows", shown=True, what="reading") as shown:
        shown.advance(1)
        assert caplog.messages == []
        time.sleep(0.1)
        for _ in range(9):
            shown.advance(1)
    (line,) = caplog.messages
    assert line.startswith("reading: 20.0 % done")


def test_quiet_work_has_no_progress(monkeypatch, caplog):
    monkeypatch.setattr(progress, "PATIENT_SECONDS", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    caplog.set_level(logging.WARNING)
    with progress.Progress(10, "rows", shown=True) as shown:
        assert shown._bar is None
        shown.advance(1)
    assert caplog.messages == []


class ZMQInteractiveShell:
    """The class of a notebook's shell, by whose name notebooks are known."""


@pytest.fixture
def displayed(monkeypatch):
    """What a notebook shows, one after another, in one place."""
    shown = []
    handle = SimpleNamespace(update=lambda data, raw: shown.append(data))

    def display(data, *, raw, display_id):
        assert not shown
        shown.append(data)
        return handle

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=ZMQInteractiveShell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    return shown


def test_a_notebook_has_a_bar_for_slow_work(monkeypatch, caplog, displayed):
    monkeypatch.setattr(progress, "PATIENT_SECONDS", 0.2)
    monkeypatch.setattr(progress, "NOTEBOOK_SECONDS", 0.1)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    caplog.set_level(logging.WARNING)
    with progress.Progress(10, "rows", shown=True, what="reading") as shown:
        shown.advance(1)
        assert displayed == []
        time.sleep(0.3)
        shown.advance(4)
        shown.advance(1)
        assert len(displayed) == 1
        time.sleep(0.2)
        shown.advance(1)
    first, second, last = displayed
    assert first["text/plain"].startswith("reading: 50.0 % done, 0:00:00 left, ")
    assert first["text/html"].startswith('<progress value="0.500"></progress> reading: 50.0 % done')
    assert second["text/plain"].startswith("reading: 70.0 % done")
    assert last == {"text/plain": ""}
    assert caplog.messages == []


@pytest.mark.parametrize(("level", "rank"), [(logging.ERROR, True), (logging.WARNING, False)])
def test_a_notebook_has_no_bar_if_nobody_wants_one(monkeypatch, caplog, displayed, level, rank):
    """With a logger that is quiet, and on ranks that are not root."""
    monkeypatch.setattr(progress, "PATIENT_SECONDS", 0.0)
    caplog.set_level(level)
    with progress.Progress(10, "rows", shown=rank) as shown:
        shown.advance(1)
    assert displayed == []
