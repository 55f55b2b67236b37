"""Write read counts as programs do, in all kinds of tables, and compare all that reads them with plain numbers.

python tests/robustness/counts_as_written.py --cases 400 --seed 1 2 -o counts_as_written.csv

A case draws a kind of table, some rows whose counts are written in another way, and a function or command.  The same
table is given once more, as text, with plain whole numbers, with nothing where no count is meant, and with a word where
a text means no count.  Both must give the same result, and exclude as many rows; or the table is refused in one line.
"""

from __future__ import annotations

import dataclasses
import gzip
import logging
import math
import random
import re
import sys
import time
import warnings
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import mutate
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from campaign import Case, campaign, ended, errors_of, in_process, parsed
from kill_outputs import with_copies

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.recombination.exclusions import Exclusion

COLUMN = "duplicate_count"
MODEL = mutate.MODEL[1]
MOST = 10**15
MISSING, INVALID = "", "seven"
"""What the plain table has where there is no count, and where a text means no count."""

SPELLED: tuple[Callable[[int], str], ...] = (
    str, "{}.0".format, "{}.".format, " {} ".format, "\u00a0{}".format, "0{}".format, "{:e}".format, "{:E}".format,
    "{:.3e}".format, "{:.15e}".format, "{}e0".format, "{}.000e+00".format, "{}E00".format,
)  # fmt: skip
"""Ways to write a whole number, of which programs use some; where digits are lost, another number is meant."""

TEXTS: dict[str, int | str] = {
    "1e+05": 100_000, "1E3": 1000, "1e3": 1000, "1.5e1": 15, "1e15": MOST, "1000000000000000": MOST, " 900 ": 900,
    "1.0": 1, "900.00": 900, "007": 7,
    "": MISSING, "NaN": MISSING, "nan": MISSING, "NA": MISSING, "N/A": MISSING, "None": MISSING, "null": MISSING,
    " ": MISSING,
    "1,000": INVALID, "-5": INVALID, "12.5": INVALID, "inf": INVALID, "-inf": INVALID, "Infinity": INVALID,
    "1" * 19: INVALID, "9" * 40: INVALID, "1e16": INVALID, "1e999": INVALID, "1e-3": INVALID, "0x10": INVALID,
    "1_000": INVALID,
    "\u0661\u0662": INVALID, "\uff17": INVALID, "0": INVALID, "0.0": INVALID, "-0": INVALID,
    "true": INVALID, "1 000": INVALID, "1.000.000": INVALID, "1e": INVALID, "e5": INVALID, "--": INVALID,
    "1/2": INVALID,
    "1'000": INVALID, "5 reads": INVALID, "<5": INVALID, "+7": INVALID, "0b11": INVALID, "1e5.0": INVALID,
    "\u00b2": INVALID, "\u2167": INVALID, "1d3": INVALID, "#N/A": INVALID, "1.0.0": INVALID,
}  # fmt: skip
"""Texts, and what they mean."""


def meaning(value: Any) -> int | str:
    """What a value that is no text means."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return MISSING
    if isinstance(value, float) and math.isinf(value):
        return INVALID
    number = Decimal(value) if isinstance(value, float | Decimal) else Decimal(int(value))
    return int(number) if number == number.to_integral_value() and 1 <= number <= MOST else INVALID


def texts(plain: list[int], chance: random.Random) -> tuple[list[Any], list[int | str]]:
    """Counts as texts, and what they mean."""
    values: list[Any] = list(map(str, plain))
    meant: list[int | str] = list(plain)
    for row in chance.sample(range(len(plain)), chance.randrange(1, 6)):
        if chance.random() < 0.4:
            values[row] = chance.choice(SPELLED)(plain[row])
            lost = int(Decimal(values[row].replace("\u00a0", " ").strip()))
            meant[row] = lost
        else:
            values[row], meant[row] = chance.choice(list(TEXTS.items()))
    return values, meant


WHOLE = (1, 7, 900, 0, 120)
SMALL = (1, 7, 0, 120)
SIGNED = (*SMALL, -5)
LARGE = (*WHOLE, MOST, MOST + 1, 2**62)
FLOATS = (1.0, 900.0, 12.5, 1e5, math.nan, math.inf, -math.inf, -5.0, 0.0, -0.0, 1e15, 1e16, 1e300, 5e-324, 16777217.0)
DECIMALS = tuple(map(Decimal, ("1.00", "900.00", "12.50", "-5.00", "0.00", "100000.00")))


def typed(values: tuple[Any, ...], *, null: bool = True, single: bool = False) -> Any:
    """How to draw counts of a type, and what they mean."""

    def drawn(plain: list[int], chance: random.Random) -> tuple[list[Any], list[int | str]]:
        first = values[0]
        counts: list[Any] = [type(first)(own) for own in plain]
        for row in chance.sample(range(len(plain)), chance.randrange(1, 6)):
            counts[row] = chance.choice((*values, None) if null else values)
        if single:
            with np.errstate(over="ignore"):
                counts = [None if own is None else float(np.float32(own)) for own in counts]
            # The shortest decimal number of a single float is what it means.
            return counts, [meaning(own if own is None else float(str(np.float32(own)))) for own in counts]
        return counts, [meaning(own) for own in counts]

    return drawn


IN_MEMORY: dict[str, tuple[Any, Callable[[dict[str, list[Any]], list[Any]], Any]]] = {
    **{f"arrow {kind}": (drawn, lambda rows, counts, kind=kind: pa.table({**rows, COLUMN: pa.array(counts, kind)}))
       for kind, drawn in (
           (pa.int8(), typed(SIGNED)), (pa.uint8(), typed(SMALL)), (pa.int32(), typed((*WHOLE, -5))),
           (pa.int64(), typed(LARGE)), (pa.uint64(), typed((*LARGE, 2**64 - 1))), (pa.float64(), typed(FLOATS)),
           (pa.float32(), typed(FLOATS, single=True)), (pa.decimal128(20, 2), typed(DECIMALS)),
           (pa.decimal256(50, 2), typed(DECIMALS)), (pa.string(), texts), (pa.large_string(), texts),
       )},
    "arrow dictionary": (texts, lambda rows, counts: pa.table(
        {**rows, COLUMN: pa.array(counts, pa.string()).dictionary_encode()})),
    "pandas object": (texts, lambda rows, counts: pd.DataFrame({**rows, COLUMN: pd.Series(counts, dtype=object)})),
    "pandas string": (texts, lambda rows, counts: pd.DataFrame({**rows, COLUMN: pd.Series(counts, dtype="string")})),
    "pandas category": (texts, lambda rows, counts: pd.DataFrame(
        {**rows, COLUMN: pd.Series(counts, dtype="category")})),
    "pandas Int64": (typed(LARGE), lambda rows, counts: pd.DataFrame({**rows, COLUMN: pd.array(counts, "Int64")})),
    "pandas float64": (typed(FLOATS, null=False), lambda rows, counts: pd.DataFrame({**rows, COLUMN: counts})),
    "pandas Float64": (typed(FLOATS), lambda rows, counts: pd.DataFrame({**rows, COLUMN: pd.array(counts, "Float64")})),
    "pandas mixed": (typed(LARGE), lambda rows, counts: pd.DataFrame(
        {**rows, COLUMN: pd.Series([str(own) if k % 2 else own for k, own in enumerate(counts)], dtype=object)})),
    "polars String": (texts, lambda rows, counts: pl.DataFrame({**rows, COLUMN: counts})),
    "polars Categorical": (texts, lambda rows, counts: pl.DataFrame(
        {**rows, COLUMN: pl.Series(counts, dtype=pl.Categorical)})),
    "polars Int64": (typed(LARGE), lambda rows, counts: pl.DataFrame(
        {**rows, COLUMN: pl.Series(counts, dtype=pl.Int64)})),
    "polars Float64": (typed(FLOATS), lambda rows, counts: pl.DataFrame(
        {**rows, COLUMN: pl.Series(counts, dtype=pl.Float64)})),
    "polars Decimal": (typed(DECIMALS), lambda rows, counts: pl.DataFrame(
        {**rows, COLUMN: pl.Series(counts, dtype=pl.Decimal(20, 2))})),
}  # fmt: skip
"""Tables in memory, and Parquet files of them: how counts are drawn, and the table of rows and counts."""

FILES = ("tsv", "csv", "tsv.gz", "parquet")


def as_text(rows: dict[str, list[Any]], counts: list[Any], path: Path) -> Path:
    """A text table of rows and counts."""
    comma = path.name.endswith(".csv")
    quoted = [f'"{own}"' if comma and "," in str(own) else str(own) for own in counts]
    lines = zip(*({**rows, COLUMN: quoted}).values(), strict=True)
    text = "\n".join(("," if comma else "\t").join(map(str, line)) for line in [[*rows, COLUMN], *lines]) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "enrich": lambda tables: hpcvdj.enrich(
        tables[0], MODEL, kappa=1.0, min_neighbours=1, backend="cpu", min_reads=3, keep_misfits=True),
    "sharing": lambda tables: hpcvdj.sharing(
        _several(tables), MODEL, q=1.0, draws=1000, backend="cpu", keep_misfits=True),
    "contamination": lambda tables: hpcvdj.contamination(
        _several(tables), MODEL, min_low=1, draws=1000, backend="cpu", keep_misfits=True),
    "infer": lambda tables: hpcvdj.infer(tables[0], MODEL, rows="all", iterations=1, hold_out=0.0, backend="cpu"),
}  # fmt: skip
COMMANDS: dict[str, tuple[str, ...]] = {
    "contamination --write-clean": (
        "contamination", "A", "B", "-m", MODEL, "--min-low", "1", "--draws", "1000", "--keep-misfits",
        "-o", "page.tsv", "--write-clean", "clean",
    ),
    "generate --like": ("generate", "-m", MODEL, "--like", "A", "--like", "B", "-o", "page.tsv"),
    "enrich of a folder": ("enrich", "A", "B", *mutate.ENRICH, "--min-reads", "3", "--keep-misfits", "-o", "clean"),
}  # fmt: skip
"""These take files."""


def _several(tables: list[Any]) -> Any:
    return tables if all(isinstance(own, Path) for own in tables) else dict(zip("AB", tables, strict=True))


def plain_of(value: Any) -> Any:
    """A result without what another call may say otherwise."""
    if isinstance(value, pa.Table):
        return value.to_pydict()
    if isinstance(value, np.ndarray):
        # NaN is not equal to itself, but written alike.
        return repr(value.tolist())
    if isinstance(value, hpcvdj.Model):
        return value.digest
    if isinstance(value, Exclusion):
        # An example is written as the table has it.
        return [repr(value.kind), [detail for detail in map(repr, value.details) if not detail.startswith("('text'")]]
    if dataclasses.is_dataclass(value):
        return {own.name: plain_of(getattr(value, own.name)) for own in dataclasses.fields(value)
                if own.name not in ("run", "seconds", "message", "text")}  # fmt: skip
    if isinstance(value, dict):
        return {key: plain_of(own) for key, own in value.items()}
    return [plain_of(own) for own in value] if isinstance(value, list | tuple) else repr(value)


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def excluded_of(lines: list[str]) -> list[str]:
    """How many rows were excluded, by the messages."""
    return sorted({number for line in lines for number in re.findall(r"([\d,]+ of [\d,]+) rows excluded", line)})


def called(name: str, tables: list[Callable[[], Any]]) -> tuple[Any, list[str]]:
    """The result of a function, or its InputError, and what it says of excluded rows.

    tables  each makes its table: a process that polars gave threads must not fork
    """
    handler = _Lines()
    logging.getLogger("hpcvdj").addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = plain_of(FUNCTIONS[name]([table() for table in tables]))
            except InputError as error:
                return error, []
    finally:
        logging.getLogger("hpcvdj").removeHandler(handler)
    return found, excluded_of([*handler.lines, *(str(own.message) for own in caught)])


def written(case: Case, name: str, tables: list[Path]) -> tuple[Any, list[str]]:
    """What a command writes, without the counts in it, or its error, and what it says of excluded rows."""
    work = tables[0].parent
    named = {"A": tables[0].name, "B": tables[1].name}
    lines = ended(case, [named.get(word, word) for word in COMMANDS[name]], work)
    if case.exit_code:
        return InputError("\n".join(errors_of(lines))), []
    files = sorted([work / "page.tsv", *(work / "clean").glob("[!.]*")])
    contents = {}
    for number, path in enumerate(files):
        if path.exists() and path.suffix != ".json":
            table = hpcvdj.read_table(path) if "--like" not in name else path.read_text()
            contents[number] = table if isinstance(table, str) else table.select(table.column_names[:4]).to_pydict()
        if path.exists():
            path.unlink()
    return contents, excluded_of((work / mutate.LOG).read_text().splitlines())


def run(case: Case, work: Path, chance: random.Random) -> None:
    """Draw a case, and compare."""
    name = [*FUNCTIONS, *COMMANDS][case.number % (len(FUNCTIONS) + len(COMMANDS))]
    kind = chance.choice([*IN_MEMORY, *["text"] * 8])
    drawn, of_counts = IN_MEMORY.get(kind, (texts, None))
    suffix = (
        chance.choice(FILES[:3]) if kind == "text" else "parquet" if name in COMMANDS or chance.random() < 0.5 else ""
    )
    given: list[Any] = []
    plain: list[Path] = []
    shown = []
    for letter, source in zip("AB", ("y.tsv", "c.tsv"), strict=True):
        head, *lines = (work / source).read_text().splitlines()
        columns = dict(
            zip(head.split("\t"), map(list, zip(*(line.split("\t") for line in lines), strict=True)), strict=True)
        )
        own_counts = [int(count) for count in columns.pop(COLUMN)]
        counts, meant = drawn(own_counts, chance)
        shown += [f"{own!r}" for own, right in zip(counts, own_counts, strict=True) if str(own) != str(right)]
        plain.append(as_text(columns, meant, work / "plain" / f"{letter}.tsv"))
        if kind == "text":
            given.append(as_text(columns, counts, work / "given" / f"{letter}.{suffix}"))
            continue
        table = partial(of_counts, columns, counts)
        path = work / "given" / f"{letter}.parquet"
        if suffix:
            in_process(work, partial(written_parquet, table, path))
        given.append(path if suffix else table)
    case.kind = f"{name}, {kind} {suffix}: {' '.join(dict.fromkeys(shown))}"[:300]
    begun = time.monotonic()
    if name in COMMANDS:
        expected = written(case, name, plain)
        found = written(case, name, given)
    else:
        case.command = f"hpcvdj.{name}(…)"
        makers = [[own if callable(own) else partial(Path, own) for own in tables] for tables in (plain, given)]
        expected, found = (in_process(work, partial(called, name, tables)) for tables in makers)
        case.seconds = round(time.monotonic() - begun, 2)
    refused = isinstance(found[0], InputError)
    if refused:
        case.exit_code, case.said = 2, str(found[0]).replace(str(work), "")[:200]
    if refused and "mixed types" in case.said:
        # pyarrow takes no column of texts and numbers.
        return
    if refused != isinstance(expected[0], InputError):
        case.fault = case.fault or "one of the two is refused"
    elif not refused and found[0] != expected[0]:
        case.fault = "another result"
    elif not refused and found[1] != expected[1]:
        case.fault = f"excluded {found[1]}, not {expected[1]}"


def written_parquet(make: Callable[[], Any], path: Path) -> None:
    """A Parquet file, as the library of the table writes it."""
    table = make()
    if isinstance(table, pa.Table):
        pq.write_table(table, path)
    elif isinstance(table, pl.DataFrame):
        table.write_parquet(path)
    else:
        try:
            table.to_parquet(path)
        except pa.ArrowException:
            # Columns of mixed types have no type in Parquet.
            table.astype({COLUMN: str}).to_parquet(path)


def prepare(work: Path) -> None:
    """Tables of two individuals, of whom one has copies of the other's."""
    for seed, name in enumerate(("y.tsv", "c.tsv")):
        # Individuals are named by the files.
        (work / ("plain", "given")[seed]).mkdir()
        words = ("generate", "-m", MODEL, "-n", "60", "--productive", "--seed", str(seed), "-o", name)
        code, said, *_ = mutate.ended(words, work, learning=True)
        assert code == 0, said
    with_copies(work / "y.tsv", work / "c.tsv")


if __name__ == "__main__":
    sys.exit(campaign(parsed(__doc__ or "", 300).parse_args(), Case, prepare, run))
