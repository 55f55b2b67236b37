"""A comparison that a signal or a full disk stops, and that goes on."""

import errno
import shutil
from functools import partial

import numpy as np
import pytest

from hpcvdj.errors import CompleteError, InputError, MachineError, StoppedError, choices
from hpcvdj.kernels.kmers import join_cpu
from hpcvdj.kernels.kmers.methods import KmerMethod
from hpcvdj.kernels.pacing import Pacer
from hpcvdj.motifs import comparison as module
from hpcvdj.motifs.edges import EdgeFilter
from hpcvdj.motifs.tiles import plan
from hpcvdj.runs import folder
from hpcvdj.runs.stopping import StopRequest
from hpcvdj.storage import hdf5
from tests.kernels.kmers.cases import random_text
from tests.motifs.comparing import TEXTS, StopWhen, compare, content, exact


@pytest.mark.parametrize("edges", [None, EdgeFilter(min_score=0.2, top=3)])
def test_stopped_and_resumed(fasta, tmp_path, monkeypatch, edges):
    whole, target = tmp_path / "whole.h5", tmp_path / "o.h5"
    options = {"edges": edges, "layout": (6, 4), "monkeypatch": monkeypatch, "strands": "both"}
    compare(fasta, whole, **options)
    folder = tmp_path / "o.h5.checkpoint"
    with pytest.raises(StoppedError, match="SIGTERM: stopped with the finished tiles saved; resume=True"):
        compare(fasta, target, request=StopWhen(folder, "tile-*.state", 5), **options)
    assert not target.exists()
    assert len(list(folder.glob("tile-*.state"))) == 5
    with pytest.raises(InputError, match="resume=True continues it"):
        compare(fasta, target, **options)
    with pytest.raises(InputError, match="distinct was False, is True"):
        compare(fasta, target, resume=True, distinct=True, **options)
    # What a killed run leaves; and other sizes, of which those of the first run hold.
    for path in (folder / "tile-9.npz.new", tmp_path / ".o.h5.part"):
        path.write_bytes(b"half")
    compare(fasta, target, resume=True, **{**options, "layout": (6, 8)}, method="index")
    one, other = content(target), content(whole)
    assert np.array_equal(one, other) if edges is None else sorted(one) == sorted(other)
    assert not folder.exists()
    # What a run leaves that is killed right after the result has its name, and one that was to replace the result.
    for theirs in ({"distinct": True}, {}):
        with pytest.raises(StoppedError):
            compare(fasta, target, overwrite=True, request=StopWhen(folder, "tile-*.state", 2), **options, **theirs)
        with pytest.raises(CompleteError, match="complete already"):
            compare(fasta, target, resume=True, **options)
        assert folder.exists() == bool(theirs)
        shutil.rmtree(folder, ignore_errors=True)
    with pytest.raises(InputError, match=r"another run \(d was 2, is 1; weights was"):
        compare(fasta, target, resume=True, d=1, **options)


@pytest.mark.parametrize("edges", [None, EdgeFilter(min_score=0.2, top=3)])
def test_stopped_while_the_result_is_put_together(fasta, tmp_path, monkeypatch, edges):
    target, folder = tmp_path / "o.h5", tmp_path / "o.h5.checkpoint"
    options = {"edges": edges, "layout": (6, 4), "monkeypatch": monkeypatch}
    tiles_in_all = len(plan(len(TEXTS), 1, 6, 4))
    with pytest.raises(StoppedError, match="SIGTERM: stopped while the result was put together"):
        compare(fasta, target, request=StopWhen(folder, "tile-*.state", tiles_in_all), **options)
    assert not target.exists()
    assert not (tmp_path / ".o.h5.part").exists()
    monkeypatch.setattr(KmerMethod, "load", None)
    compare(fasta, target, resume=True, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.h5", "some.fasta"], "no debris"


def test_stopped_between_the_pieces_of_a_tile(fasta, tmp_path, monkeypatch):
    """A tile may take long: it is left, and compared again."""
    target, pieces = tmp_path / "o.h5", []

    class StopAtThird(StopRequest):
        def __bool__(self):
            self.name = "SIGTERM" if len(pieces) == 3 else ""
            return bool(self.name)

    def piece(*arguments):
        pieces.append(arguments)

    options = {"layout": (512, 512), "monkeypatch": monkeypatch, "method": "index"}
    with monkeypatch.context() as slow:
        slow.setattr(join_cpu, "_join", piece)
        slow.setattr(module, "Pacer", partial(Pacer, seconds=0.0))
        with pytest.raises(StoppedError, match="stopped before any result; start again with the same command"):
            compare(fasta, target, request=StopAtThird(), **options)
    assert len(pieces) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["some.fasta"]
    compare(fasta, target, resume=True, **options)
    assert np.array_equal(content(target)[0], exact()[0])


@pytest.mark.parametrize("method", list(choices(KmerMethod)))
def test_pieces_add_up(tmp_path, monkeypatch, method):
    """Several pieces a tile, of one thread's work each, whatever the method cuts."""
    rng = np.random.default_rng(2)
    many = tmp_path / "many.fasta"
    many.write_text("".join(f">{i}\n{random_text(rng, 30, 'AACG')}\n" for i in range(1100)))
    compare(many, tmp_path / "whole.h5", k=5, d=1, method="index")
    pieces = []

    def paced(between):
        return Pacer(seconds=0.0, between=lambda: pieces.append(between()))

    monkeypatch.setattr(module, "Pacer", paced)
    compare(many, tmp_path / "o.h5", k=5, d=1, method=method, layout=(1024, 1024), monkeypatch=monkeypatch)
    assert len(pieces) > 3, "more than there are tiles"
    assert np.array_equal(content(tmp_path / "o.h5"), content(tmp_path / "whole.h5"))


def test_a_damaged_tile_is_named(fasta, tmp_path, monkeypatch):
    target, folder = tmp_path / "o.h5", tmp_path / "o.h5.checkpoint"
    options = {"layout": (6, 4), "monkeypatch": monkeypatch}
    with pytest.raises(StoppedError):
        compare(fasta, target, request=StopWhen(folder, "tile-*.state", 3), **options)
    damaged = min(folder.glob("tile-*.state"))
    damaged.write_bytes(damaged.read_bytes()[:100])
    with pytest.raises(InputError, match=f"{damaged.name}: is damaged: .*; remove it"):
        compare(fasta, target, resume=True, **options)
    damaged.unlink()
    compare(fasta, target, resume=True, **options)
    assert np.array_equal(content(target)[0], exact()[0])


def test_a_full_disk_while_storing_loses_nothing(fasta, tmp_path, monkeypatch):
    target, write = tmp_path / "o.h5", hdf5._SafeFile.write

    def failing(self, data):
        # As on a disk that has room for the first few bytes.
        if self.tell() > 2000:
            self.fault = self.fault or OSError(errno.ENOSPC, "No space left on device")
        return write(self, data)

    with monkeypatch.context() as full:
        full.setattr(hdf5._SafeFile, "write", failing)
        with pytest.raises(
            MachineError, match=r"the disk is full; .* What was saved before is complete: .* resume=True"
        ):
            compare(fasta, target)
    assert not target.exists()
    monkeypatch.setattr(KmerMethod, "load", None)
    compare(fasta, target, resume=True)
    assert np.array_equal(content(target)[0], exact()[0])


def test_a_full_disk_loses_nothing(fasta, tmp_path, monkeypatch):
    options = {"layout": (6, 4), "monkeypatch": monkeypatch}
    save, calls = folder.write_state, []

    def failing(*given):
        calls.append(1)
        if len(calls) > 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        save(*given)

    monkeypatch.setattr(folder, "write_state", failing)
    with pytest.raises(MachineError, match="the disk is full"):
        compare(fasta, tmp_path / "o.h5", **options)
    monkeypatch.setattr(folder, "write_state", save)
    compare(fasta, tmp_path / "o.h5", resume=True, **options)
    assert np.array_equal(content(tmp_path / "o.h5")[0], exact()[0])
