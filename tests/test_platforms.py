"""What Linux has and macOS lacks is not needed: /proc, the cores of a process."""

import ast
import os
from pathlib import Path

from tests.commands import hpcvdj_command
from tests.conftest import ROOT, SMALL

SOURCES = sorted((ROOT / "hpcvdj").rglob("*.py"))
ONLY_LINUX = ("/proc", "/sys/", "/dev/shm")


def unguarded(tree):
    """Texts that begin with a folder of Linux, outside of a `try` that expects an OSError."""
    guarded = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and any("OSError" in ast.dump(own.type) for own in node.handlers if own.type):
            guarded |= {id(own) for part in node.body for own in ast.walk(part)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [node.value for node in texts if node.value.startswith(ONLY_LINUX) and id(node) not in guarded]


def test_the_search_finds_what_is_not_guarded():
    text = "import os\nos.listdir('/proc/self/fd')\ntry:\n    open('/proc/cpuinfo')\nexcept OSError:\n    pass\n"
    assert unguarded(ast.parse(text)) == ["/proc/self/fd"]


def test_folders_of_linux_may_be_missing():
    assert len(SOURCES) > 300
    # To parse those that name none would take seconds.
    naming = [path for path in SOURCES if any(name in path.read_text() for name in ONLY_LINUX)]
    assert naming
    assert not [path for path in naming if unguarded(ast.parse(path.read_text()))]


def test_commands_run_without_them(tmp_path, monkeypatch):
    """As on macOS: no /proc, no os.sched_getaffinity."""
    opened, listed = Path.read_text, os.listdir

    def missing(call):
        def refuse(path=".", *rest, **options):
            if str(path).startswith(ONLY_LINUX):
                raise FileNotFoundError(2, "No such file or directory", str(path))
            return call(path, *rest, **options)

        return refuse

    monkeypatch.setattr(Path, "read_text", missing(opened))
    monkeypatch.setattr(os, "listdir", missing(listed))
    monkeypatch.delattr(os, "sched_getaffinity")
    result, table = tmp_path / "small.h5", tmp_path / "small.tsv"
    hpcvdj_command("count", SMALL, "-g", "mouse_trb_paper", "--batch-rows", 20, "--backend", "cpu", "-o", result)
    hpcvdj_command("export", result, "-o", table)
    assert len(table.read_text().splitlines()) > 20
    assert "thread(s)" in hpcvdj_command("info")[0]
