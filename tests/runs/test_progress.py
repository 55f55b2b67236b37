"""hpcvdj.runs.progress: what people read while work goes on."""

import logging
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


def test_fast_work_is_not(monkeypatch, caplog):
    monkeypatch.setattr(progress, "PATIENT_SECONDS", 0.3)
    caplog.set_level(logging.INFO)
    with progress.told_if_slow("fast work", shown=True):
        pass
    time.sleep(0.6)
    assert caplog.messages == []
