"""Give a hpcvdj program the hostile inputs of the attack on the first edition, and note what it does.

python results/first_edition/measure.py HPCVDJ -o results/first_edition/NAME.csv

HPCVDJ is the program (`bin/hpcvdj` of an environment, with `mpiexec` beside it).  Each row of the output is a command:
how it ended, its seconds and the peak of its memory, what it said last, and what came of the files around it.  Needs
Linux, h5py and pyarrow, and 8 GB of memory for the first edition.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from program import (
    CALLS,
    GERMLINE,
    HEADER,
    LINES,
    PRECIOUS,
    SECRET,
    SMALL,
    Program,
    big_table,
    bomb,
    count,
    exists,
    in_place,
    line,
    raw_text,
    replace,
    sequences,
    tampered,
    two_rows,
    wait_for,
)


@line
def overwritten_between_slices(program: Program, folder: Path) -> None:
    big_table(folder / "t.parquet", 1)
    big_table(folder / "other.parquet", 2)
    own, other = (folder / "t.parquet").read_bytes(), (folder / "other.parquet").read_bytes()
    program.prepared(*count(folder, folder / "t.parquet", "whole.h5"))

    def against_whole(said: str) -> str:
        if not (folder / "o.h5").exists():
            return "no o.h5"
        wrong = (sequences(folder / "o.h5") != sequences(folder / "whole.h5")).sum()
        return f"o.h5 was written; {wrong:,} rows counted from the other table"

    for stop in (signal.SIGTERM, None):
        process = program.start(*count(folder, folder / "t.parquet", "o.h5", "--batch-rows", 500))
        wait_for(lambda: list(folder.glob("o.h5.parts/part-*.h5")), process)
        in_place(folder / "t.parquet", other)
        if stop:
            time.sleep(0.3)
            process.send_signal(stop)
        name = "Parquet table overwritten in place between slices" + (", then SIGTERM" if stop else "")
        program.end(process, name, against_whole)
        in_place(folder / "t.parquet", own)
        if not (folder / "o.h5").exists():
            resumed = count(folder, folder / "t.parquet", "o.h5", "--batch-rows", 500, "--resume")
            program.run("the table restored, --resume", *resumed, then=against_whole)
        (folder / "o.h5").unlink(missing_ok=True)
        shutil.rmtree(folder / "o.h5.parts", ignore_errors=True)


def read_to(process: int, path: Path) -> int:
    """How far a process has read a file that it has open, in bytes; 0 if it has not."""
    for place in Path(f"/proc/{process}/fd").glob("*"):
        with suppress(OSError):
            if place.readlink() == path:
                return int((place.parent.parent / "fdinfo" / place.name).read_text().split()[1])
    return 0


@line
def exported_while_it_changes(program: Program, folder: Path) -> None:
    rows = 1_000_000
    table = folder / "t.tsv"
    big_table(table, 1, rows)
    own = table.read_bytes()
    program.prepared(*count(folder, table))

    def lines(said: str) -> str:
        target = folder / "e.tsv"
        return (
            f"e.tsv has {len(target.read_text().splitlines()) - 1:,} of {rows:,} rows"
            if target.exists()
            else "no e.tsv"
        )

    process = program.start("export", folder / "o.h5", "-o", folder / "e.tsv")
    most = 0

    def digested() -> bool:
        """Whether the table has been read for the most part, and then closed or begun again."""
        nonlocal most
        now = read_to(process.pid, table)
        most = max(most, now)
        return most > len(own) // 2 and now < most

    wait_for(digested, process)
    os.truncate(table, own.index(b"\n", len(own) * 3 // 4) + 1)
    program.end(process, "table truncated after its digest was taken", lines)


@line
def long_texts(program: Program, folder: Path) -> None:
    target = folder / "o.h5"
    for name, size in (("sequence_id", 15_000_000), ("v_call", 2_000_000)):
        cells = [[f"s{k}", "TRBV1*01", "TRBJ1-1*01", "TGTACTTGTTTT"] for k in range(401)]
        cells[7][HEADER.split().index(name)] = "y" * size
        (folder / "t.tsv").write_text(HEADER + "".join("\t".join(row) + "\n" for row in cells))
        program.run(
            f"one {name} of {size // 10**6} MB", *count(folder, folder / "t.tsv"),
            then=lambda said: f"o.h5 has {target.stat().st_size >> 20:,} MiB" if target.exists() else "no o.h5",
        )  # fmt: skip


@line
def bombs(program: Program, folder: Path) -> None:
    path = bomb(folder / "g.tsv.gz", b"locus\t")
    program.run("germline of 5 GiB in gzip", "count", SMALL, "-g", path, "-o", folder / "o.h5")
    for name, head in (("s.json.gz", b'{"GermlineSet": "'), ("s.fasta.gz", b">a\n")):
        path = bomb(folder / name, head)
        program.run(f"germline import of 5 GiB in {name}", "germline", "import", path, "-o", folder / "g.tsv")
    program.run("FASTA of 5 GiB in gzip", "motifs", "compare", path, "-o", folder / "m.h5", "-k", 8, "-d", 1)
    program.run("table with one line of 5 GiB in gzip", *count(folder, bomb(folder / "t.tsv.gz", HEADER.encode())))


@line
def odd_texts(program: Program, folder: Path) -> None:
    def ids(said: str) -> str:
        if not (folder / "o.h5").exists():
            return "no o.h5"
        with h5py.File(folder / "o.h5") as file:
            return f"ids {file['sequences/sequence_id'][:].tolist()}"

    program.run("ids a and a\\0", *count(folder, two_rows(folder / "t.parquet", sequence_id=["a", "a\0"])), then=ids)
    for column in ("sequence_id", "v_call"):
        table = two_rows(folder / "t.parquet", **{column: raw_text(b"a\xff", b"b")})
        program.run(f"{column} that is not UTF-8, Parquet", *count(folder, table), then=ids)


@line
def damaged_germline(program: Program, folder: Path) -> None:
    letters = random.Random(1)
    fasta = "".join(f">s{k}\n{''.join(letters.choices('ACGT', k=200))}\n" for k in range(300))
    for name, data in (("g.tsv.gz", GERMLINE.read_bytes()), ("s.fasta.gz", fasta.encode())):
        packed = bytearray(gzip.compress(data))
        packed[len(packed) // 2] ^= 0xFF
        (folder / name).write_bytes(packed)
    program.run("damaged gzip, germline", "count", SMALL, "-g", folder / "g.tsv.gz", "-o", folder / "o.h5")
    program.run(
        "damaged gzip, FASTA", "motifs", "compare", folder / "s.fasta.gz", "-o", folder / "o.h5", "-k", 8, "-d", 1
    )
    for text in (
        "1",
        '[{"allele_descriptions": 1}]',
        '[{"allele_descriptions": [{"label": 1}]}]',
        '{"GermlineSet": [{"allele_descriptions": [{"label": "\\ud800"}]}]}',
    ):
        (folder / "s.json").write_text(text)
        words = ("germline", "import", folder / "s.json", "-o", folder / "g.tsv", "--format", "airr")
        program.run(f"GermlineSet {text}", *words)


@line
def pipes(program: Program, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    program.run("-g FIFO", "count", SMALL, "-g", folder / "pipe", "-o", folder / "o.h5")
    words = f"'{program.path}' -q count '{SMALL}' -o '{folder}/o.h5' -g <(cat '{GERMLINE}')"
    process = subprocess.Popen(
        ["bash", "-c", words], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
    )
    program.end(process, "-g <(cat GERMLINE)")


@line
def lines_of_tables(program: Program, folder: Path) -> None:
    row = f"\t{CALLS}\tTGTACTTGTTTT"
    wide = HEADER.replace("\n", f"\t{'x' * (1 << 21)}\n")
    for what, text in (
        ("header of 2 MiB", f"{wide}a{row}\t\nb\t{CALLS}\n"),
        ("CR within a field of line 3", f"{HEADER}a{row}\nb\tTRBV1*01\r\tTRBJ1-1*01\tTGT\n"),
        ("line 3 of blanks", f"{HEADER}a{row}\n   \nb{row}\n"),
    ):
        (folder / "t.tsv").write_bytes(text.encode())
        program.run(what, *count(folder, folder / "t.tsv"))
    (folder / "t.tsv.gz").write_bytes(gzip.compress(SMALL.read_bytes()) + bytes(512))
    program.run("gzip padded with zeros (sound)", *count(folder, folder / "t.tsv.gz"), then=exists(folder / "o.h5"))


@line
def other_files_shown(program: Program, folder: Path) -> None:
    program.prepared(*count(folder, SMALL, "clean.h5"))
    (folder / "secret").write_bytes(SECRET * 10_000)
    with h5py.File(folder / "other.h5", "w") as other:
        other["x"] = np.array([SECRET] * 500)

    def shown(said: str) -> str:
        page = folder / "r.html"
        seen = page.exists() and SECRET in page.read_bytes()
        return "shows the other file" if seen else "does not show the other file"

    name = "sequences/sequence_id"
    external = [(str(folder / "secret"), 0, h5py.h5f.UNLIMITED)]
    for what, change in (
        ("ids stored in another file", lambda file: replace(file, name, shape=(500,), dtype="S27", external=external)),
        ("ids linked to another file",
         lambda file: (file.__delitem__(name), file.__setitem__(name, h5py.ExternalLink("other.h5", "/x")))),
    ):  # fmt: skip
        path = tampered(folder / "clean.h5", folder / "r.h5", change)
        program.run(f"report: {what}", "report", path, "-o", folder / "r.html", then=shown)


@line
def declared_sizes(program: Program, folder: Path) -> None:
    program.prepared(*count(folder, SMALL, "clean.h5"))
    program.prepared("motifs", "compare", SMALL, "-o", folder / "m.h5", "-k", 8, "-d", 1, "--top", 2)
    huge = {"shape": (10**12, 5), "dtype": "u8", "chunks": (1 << 16, 5), "compression": "gzip"}
    edges = {"shape": (10**11,), "dtype": "i4", "chunks": (1 << 20,)}
    for what, change in (
        ("counters of 36 TiB declared", lambda file: replace(file, "counters", **huge)),
        ("counters as a group", lambda file: (file.__delitem__("counters"), file.create_group("counters"))),
        ("no pairs", lambda file: file.__delitem__("pairs/offset")),
    ):
        path = tampered(folder / "clean.h5", folder / "r.h5", change)
        program.run(f"export: {what}", "export", path, "-o", folder / "e.tsv", then=exists(folder / "e.tsv"))
    for what, change in (
        ("10^9 distances", lambda file: file.attrs.__setitem__("d", 10**9)),
        ("10^11 edges declared", lambda file: replace(file, "edges/row", **edges)),
    ):
        path = tampered(folder / "m.h5", folder / "n.h5", change)
        words = ("motifs", "export", path, "-o", folder / "x.tsv")
        program.run(f"motifs export: {what}", *words, then=exists(folder / "x.tsv"))


@line
def wrong_values(program: Program, folder: Path) -> None:
    program.prepared(*count(folder, SMALL, "clean.h5"))
    program.prepared("motifs", "compare", SMALL, "-o", folder / "m.h5", "-k", 8, "-d", 1, "--top", 2)
    for what, change in (
        ("all rows 0", lambda file: replace(file, "sequences/row", data=np.zeros(500, np.int64))),
        ("negative counters", lambda file: replace(file, "counters", data=-file["counters"][:].astype("i8"))),
        ("NaN as counters", lambda file: replace(file, "counters", data=file["counters"][:] * np.nan)),
    ):
        path = tampered(folder / "clean.h5", folder / "r.h5", change)
        program.run(f"export: {what}", "export", path, "-o", folder / "e.tsv", then=exists(folder / "e.tsv"))
    path = tampered(folder / "m.h5", folder / "n.h5", lambda file: file["edges/row"].__setitem__(0, -5))
    words = ("motifs", "export", path, "-o", folder / "g.graphml")
    program.run("motifs export: negative rows of edges", *words, then=exists(folder / "g.graphml"))


@line
def records_of_other_types(program: Program, folder: Path) -> None:
    (folder / "o.h5.parts").mkdir()
    (folder / "o.h5.parts" / "part-000000.h5").write_bytes(b"x")
    for text in ("7", '{"format": "hpcvdj-run", "identity": 1, "facts": 2}'):
        for name in ("run.json", "manifest.json"):
            (folder / "o.h5.parts" / name).write_text(text)
        program.run(f"--resume: record {text}", *count(folder, SMALL, "o.h5", "--batch-rows", 100, "--resume"))


@line
def folders_of_others(program: Program, folder: Path) -> None:
    for suffix, options in (("checkpoint", ()), ("parts", ("--batch-rows", 100))):
        (folder / f"o.h5.{suffix}").mkdir()
        thesis = folder / f"o.h5.{suffix}" / "thesis.txt"
        thesis.write_text(PRECIOUS)
        program.run(
            f"foreign folder o.h5.{suffix}", *count(folder, SMALL, "o.h5", *options),
            then=lambda said, thesis=thesis: "its file is kept" if thesis.exists() else "its file is deleted",
        )  # fmt: skip


@line
def lock_as_link(program: Program, folder: Path) -> None:
    (folder / "precious").write_text(PRECIOUS)
    for name in ("o.h5.lock", ".o.h5.lock"):
        (folder / name).symlink_to(folder / "precious")
    program.run(
        "lock file that is a link", *count(folder),
        then=lambda said: "target kept" if (folder / "precious").read_text() == PRECIOUS else "target changed",
    )  # fmt: skip


@line
def lock_as_folder(program: Program, folder: Path) -> None:
    for name in ("o.h5.lock", ".o.h5.lock"):
        (folder / name).mkdir()
    program.run("lock that is a folder", *count(folder), then=exists(folder / "o.h5"))


@line
def links_as_targets(program: Program, folder: Path) -> None:
    (folder / "device").symlink_to("/dev/stdout")
    (folder / "link.h5").symlink_to(folder / "elsewhere.h5")
    for name, options in (("device", ("--overwrite",)), ("link.h5", ())):
        program.run(
            f"target that is a link to {(folder / name).readlink().name}",
            *count(folder, SMALL, name, *options),
            then=lambda said, name=name: "the link stays" if (folder / name).is_symlink() else "the link is replaced",
        )


@line
def targets_that_are_inputs(program: Program, folder: Path) -> None:
    program.prepared(*count(folder, SMALL, "o.h5"))
    program.prepared("motifs", "compare", SMALL, "-o", folder / "m.h5", "-k", 8, "-d", 1, "--top", 2)
    shutil.copy(GERMLINE, folder / "g.tsv")
    # With the suffix of the target; the first edition looked at nothing else.
    for name, copy in (("o.h5", "o.tsv"), ("m.h5", "m.tsv"), ("m.h5", "m.png")):
        shutil.copy(folder / name, folder / copy)
    clean = {name: (folder / name).read_bytes() for name in ("o.tsv", "m.tsv", "m.png", "g.tsv", "o.h5")}
    o, m, plot, g, result = (folder / name for name in clean)
    for words in (
        ("export", o, "-o", o), ("convergence", o, "-o", o), ("motifs", "export", m, "-o", m),
        ("motifs", "cluster", m, "-o", m), ("motifs", "plot", plot, "-o", plot), ("report", result, "-g", g, "-o", g),
    ):  # fmt: skip

        def kept(said: str) -> str:
            lost = [name for name, data in clean.items() if (folder / name).read_bytes() != data]
            return f"{', '.join(lost)} destroyed" if lost else "inputs kept"

        said = " ".join(str(word).removeprefix(f"{folder}/") for word in words)
        program.run(f"{said} --overwrite", *words, "--overwrite", then=kept)
        for name, data in clean.items():
            (folder / name).write_bytes(data)


@line
def tabs_in_ids(program: Program, folder: Path) -> None:
    def fields(path: Path) -> Callable[[str], str]:
        def counted(said: str) -> str:
            if not path.exists():
                return f"no {path.name}"
            return f"fields by line: {sorted({row.count(chr(9)) + 1 for row in path.read_text().splitlines()})}"

        return counted

    table = two_rows(folder / "t.parquet", sequence_id=["a\tb", "c\nd"])
    program.prepared(*count(folder, table))
    program.run(
        "export: tab and line end in ids",
        "export",
        folder / "o.h5",
        "-o",
        folder / "e.tsv",
        then=fields(folder / "e.tsv"),
    )
    program.prepared("motifs", "compare", table, "-o", folder / "m.h5", "-k", 6, "-d", 1, "--top", 1)
    words = ("motifs", "cluster", folder / "m.h5", "-o", folder / "c.tsv")
    program.run("motifs cluster: the same", *words, then=fields(folder / "c.tsv"))


@line
def killed_exports(program: Program, folder: Path) -> None:
    big_table(folder / "t.tsv", 1, 400_000)
    program.prepared(*count(folder, folder / "t.tsv"))
    known = {path.name for path in folder.iterdir()}
    for number in (signal.SIGTERM, signal.SIGKILL):
        process = program.start("export", folder / "o.h5", "-o", folder / "e.tsv")
        wait_for(lambda: [path for path in folder.iterdir() if path.name not in known and path.stat().st_size], process)
        process.send_signal(number)
        program.end(
            process, f"{number.name} of export",
            lambda said: f"left: {', '.join(sorted({path.name for path in folder.iterdir()} - known)) or 'nothing'}",
        )  # fmt: skip
    program.run(
        "the next export", "export", folder / "o.h5", "-o", folder / "e.tsv",
        then=lambda said: f"beside e.tsv: {len({path.name for path in folder.iterdir()} - known - {'e.tsv'})} files",
    )  # fmt: skip


@line
def where_it_prints(program: Program, folder: Path) -> None:
    with open("/dev/full", "w") as full:
        program.run("stdout is /dev/full", *count(folder, SMALL, "a.h5"), stdout=full, then=exists(folder / "a.h5"))
    shutil.copy(SMALL, folder / "Mäuse.tsv")
    ascii_only = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    words = count(folder, folder / "Mäuse.tsv", "ö.h5")
    program.run("ASCII locale", *words, env=ascii_only, stdout=subprocess.PIPE, then=exists(folder / "ö.h5"))
    read, write = os.pipe()
    os.close(read)
    program.run("closed pipe", *count(folder, SMALL, "p.h5"), stdout=write, then=exists(folder / "p.h5"))
    os.close(write)
    program.run("path of 5,000 characters", *count(folder, "x" * 5000))


def mpiexec(program: Program, *words: Any) -> tuple[Any, ...]:
    """What starts ranks."""
    return (program.path.with_name("mpiexec"), *words)


def ranks_of(target: Path) -> Iterator[int]:
    """The processes that have a target on their command line, but mpiexec's."""
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                words = (place / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(target).encode() in words and b"python" in words[0]:
                yield int(place.name)


@line
def stopped_ranks(program: Program, folder: Path) -> None:
    big_table(folder / "t.tsv", 1, 400_000)
    target = folder / "o.h5"

    def both_run() -> bool:
        return len(list(ranks_of(target))) == 2

    for moment, seconds in (("at the start", 0), ("3 s later", 3)):
        words = count(folder, folder / "t.tsv", "o.h5", "--patience", 5)
        process = program.start(*words, before=mpiexec(program, "-n", 2))
        if wait_for(both_run, process):
            time.sleep(seconds)
            os.kill(max(ranks_of(target)), signal.SIGSTOP)
        program.end(process, f"a rank stopped (SIGSTOP) {moment}, --patience 5", exists(target))
        for path in folder.glob("*o.h5*"):
            path.unlink() if path.is_file() else shutil.rmtree(path)


@line
def other_options(program: Program, folder: Path) -> None:
    other = count(folder, SMALL, "o.h5", "--patience", 20, "--method", "bitwise")
    before = mpiexec(program, "-n", 1, program.path, *count(folder, SMALL, "o.h5", "--patience", 20), ":", "-n", 1)
    program.run("ranks with different options, --patience 20", *other, before=before, then=exists(folder / "o.h5"))


@line
def slow_slices(program: Program, folder: Path) -> None:
    rows = 3_000_000
    big_table(folder / "t.tsv", 1, rows)
    words = count(folder, folder / "t.tsv", "o.h5", "--batch-rows", rows, "--patience", 4)
    program.run(
        "a slice takes longer than --patience 4", *words, before=mpiexec(program, "-n", 2), then=exists(folder / "o.h5")
    )


def main() -> None:
    """Go through the lines."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--lines", type=int, nargs="*", help="by default all")
    options = parser.parse_args()
    program = Program(options.program.absolute(), options.output)
    for number, function in enumerate(LINES, 1):
        if options.lines is None or number in options.lines:
            program.line = number
            with tempfile.TemporaryDirectory() as folder:
                program.folder = Path(folder)
                try:
                    function(program, program.folder)
                except Exception as error:  # the next lines can still be measured
                    program.writer.writerow((number, function.__name__, "not measured", "", "", repr(error)[-160:], ""))
                    print(number, function.__name__, repr(error))


if __name__ == "__main__":
    main()
