"""hpcvdj.runs.progress: what people read while work goes on."""

import logging
import sys
import time

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
