"""`hpcvdj olga`: the two commands of OLGA, with its options and its columns."""

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from hpcvdj.cli import common, options
from hpcvdj.cli.declared import App
from hpcvdj.errors import InputError, few, log
from hpcvdj.options import Option, Settings, setting
from hpcvdj.runs.settings import Launch, Overwrite

if TYPE_CHECKING:
    from hpcvdj.recombination.models import Model
    from hpcvdj.recombination.repertoire import JunctionField


app = App(help="The two commands of OLGA, with its options and columns, for those who have scripts with them.")

DELIMITERS = {"tab": "\t", "space": " ", ",": ",", ";": ";", ":": ":"}
_AT_ONCE = 1 << 17
"""Sequences whose probabilities are computed together."""

OUT_OF_FRAME = "out_of_frame"

Delimiter = Literal["tab", "space", ",", ";", ":"]
SequenceType = Literal["all", "ntseq", "nucleotide", "aaseq", "amino_acid"]


def _named(species: str, locus: str, name: str) -> Any:
    """Return the option of a model of OLGA."""
    flags = f"--{species}{locus} --{species}_{name}"
    return setting(f"OLGA's model of {species} {locus}", False, flags=flags, more=True)


class OlgaModel(Settings):
    """One of OLGA's models, or a folder."""

    human_tra: bool = _named("human", "TRA", "T_alpha")
    human_trb: bool = _named("human", "TRB", "T_beta")
    human_igh: bool = _named("human", "IGH", "B_heavy")
    human_igk: bool = _named("human", "IGK", "B_kappa")
    human_igl: bool = _named("human", "IGL", "B_lambda")
    mouse_tra: bool = _named("mouse", "TRA", "T_alpha")
    mouse_trb: bool = _named("mouse", "TRB", "T_beta")
    mouse_igh: bool = _named("mouse", "IGH", "B_heavy")
    mouse_igk: bool = _named("mouse", "IGK", "B_kappa")
    mouse_igl: bool = _named("mouse", "IGL", "B_lambda")
    set_custom_model_VDJ: Path | None = setting(  # noqa: N815
        "the folder of a VDJ model",
        None,
        flags="--set_custom_model_VDJ --VDJ_model_folder",
        metavar="FOLDER",
        more=True,
    )
    set_custom_model_VJ: Path | None = setting(  # noqa: N815
        "the folder of a VJ model", None, flags="--set_custom_model_VJ --VJ_model_folder", metavar="FOLDER", more=True
    )


def _model(chosen: OlgaModel) -> "Model":
    """Return the chosen model, with the alleles that OLGA has.  Raise InputError unless it is exactly one."""
    from hpcvdj.recombination.igor import PUBLISHED, load_model

    asked = {name: value for name, value in vars(chosen).items() if value}
    if len(asked) != 1:
        raise InputError(f"{len(asked)} models; give one, as in --humanTRB, or --set_custom_model_VDJ FOLDER")
    ((name, value),) = asked.items()
    return load_model(f"{value if isinstance(value, Path) else name}{PUBLISHED}")


class InputSettings(Settings):
    """How sequences are read."""

    seq_in: int = setting("the column of the sequences; 0 is the first", 0, flags="--seq_in --seq_index", least=0)
    v_in: int | None = setting("the column of V genes", None, flags="--v_in --v_mask_index", least=0, unset="any V")
    j_in: int | None = setting("the column of J genes", None, flags="--j_in --j_mask_index", least=0, unset="any J")
    max_number_of_seqs: int | None = setting("sequences to read at most", None, flags="-m --max_number_of_seqs",
                                             least=1, unset="all")  # fmt: skip
    lines_to_skip: int = setting("lines before the first sequence", 0, flags="--lines_to_skip", least=0)
    skip_off: bool = setting("write an empty line for a line without a sequence", False,
                             flags="--skip_off --skip_empty_off")  # fmt: skip
    delimiter: Delimiter | None = setting("what separates columns", None, flags="-d --delimiter",
                                          unset="a tab in .tsv, a comma in .csv, blanks in other files")  # fmt: skip
    raw_delimiter: str | None = setting("the same as any text", None, flags="--raw_delimiter", more=True)
    gene_mask_delimiter: Delimiter | None = setting(
        "what separates genes", None, flags="--gene_mask_delimiter", more=True,
        unset="a comma, or a semicolon if commas separate columns")  # fmt: skip
    raw_gene_mask_delimiter: str | None = setting("the same as any text", None, flags="--raw_gene_mask_delimiter",
                                                  more=True)  # fmt: skip
    comment_delimiter: str | None = setting("what lines to skip begin with", None, flags="--comment_delimiter",
                                            more=True)  # fmt: skip

    def rows(self, path: Path) -> "Iterator[Row]":
        """Yield the sequences of a file."""
        from hpcvdj.storage.inputs import require_regular

        require_regular(path, "file of sequences", "name a text file")
        separator = _separator(self.raw_delimiter, self.delimiter, path)
        of_genes = self.raw_gene_mask_delimiter or DELIMITERS[
            self.gene_mask_delimiter or (";" if separator == "," else ",")
        ]  # fmt: skip
        number = 0
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line_number, line in enumerate(lines, start=1):
                comment = self.comment_delimiter and line.startswith(self.comment_delimiter)
                if line_number <= self.lines_to_skip or comment:
                    continue
                if number == self.max_number_of_seqs:
                    return
                cells = [cell.strip() for cell in line.rstrip("\r\n").split(separator)]
                source = f"{path}, line {line_number}"
                if any(cells):
                    self._require(cells, source)
                asked = (self.seq_in, self.v_in, self.j_in)
                text, v, j = (cells[k] if k is not None and any(cells) else "" for k in asked)
                if not text and not self.skip_off:
                    continue
                number += 1
                genes = [",".join(filter(None, (name.strip() for name in call.split(of_genes)))) for call in (v, j)]
                yield Row(text, genes[0], genes[1], source)

    def _require(self, cells: Sequence[str], source: str) -> None:
        """Raise InputError, as OLGA does, if a line lacks a column, or the genes of its sequence."""
        for name, k in (("seq_in", self.seq_in), ("v_in", self.v_in), ("j_in", self.j_in)):
            if k is None:
                continue
            if k >= len(cells):
                raise InputError(f"{source}: has {len(cells)} column(s), so none for --{name} {k}; count from 0")
            if name != "seq_in" and cells[self.seq_in] and not cells[k]:
                raise InputError(f"{source}: no gene in the column of --{name} {k}; write it, or leave the option out")


def _separator(raw: str | None, named: str | None, path: Path | None) -> str | None:
    """Return what separates columns; None for blanks."""
    if raw is not None or named is not None:
        return raw if raw is not None else DELIMITERS[str(named)]
    return {".tsv": "\t", ".csv": ","}.get(path.suffix if path is not None else "")


@dataclass(frozen=True)
class Row:
    """A sequence, the V and J genes that it may have (empty for any), and the file and line that it is from."""

    text: str
    v: str
    j: str
    source: str


class DisplaySettings(Settings):
    """Options of what OLGA shows while it computes.  They change nothing here, but scripts may use them."""

    quiet_flags: bool = setting("these change nothing here", False,
                                flags="--display_off --time_updates_off --skip_fast_pgen", more=True)  # fmt: skip
    display_lines: int | None = setting("these change nothing here", None,
                                        flags="--num_lines_for_display --seqs_per_time_update", more=True)  # fmt: skip


@app.command("compute_pgen")
def compute_pgen(
    sequences: Annotated[
        list[str] | None, options.argument("SEQUENCES", "Sequences, instead of a file; quote those with brackets.")
    ] = None,
    *,
    model: OlgaModel,
    infile: Annotated[Path | None, options.valued("--infile -i", "FILE", "Sequences, one in each line.")] = None,
    outfile: Annotated[Path | None, options.valued("--outfile -o", "FILE", "File to write, instead of output.")] = None,
    reading: InputSettings,
    v_mask: Annotated[
        str | None, options.valued("--v_mask", "GENES", "V genes of the sequences that are given as arguments.")
    ] = None,
    j_mask: Annotated[
        str | None, options.valued("--j_mask", "GENES", "J genes of the sequences that are given as arguments.")
    ] = None,
    seq_type_out: Annotated[SequenceType, Option("which probabilities of nucleotides", flags="--seq_type_out")] = "all",
    alphabet_filename: Annotated[
        Path | None, options.valued("--alphabet_filename -a", "FILE", "More symbols, in lines such as 'x: D, E, AAA'.")
    ] = None,
    delimiter_out: Delimiter | None = setting("what separates the columns that are written", None,
                                              flags="--delimiter_out", unset="as in the input"),
    raw_delimiter_out: str | None = setting("the same as any text", None, flags="--raw_delimiter_out", more=True),
    display: DisplaySettings,
    launch: Launch,
    overwrite: Overwrite = False,
) -> None:  # fmt: skip
    """Compute generation probabilities as olga-compute_pgen does: its options, its columns, its numbers.

    A line for each sequence: amino acids and their probability; or nucleotides, their probability, their amino acids,
    and the probability of these, which are 0 out of frame. Amino acids may have the symbols B, J, X and Z, sets such as
    [AG], and repeats such as S{2} or X{1,3}. Genes that the model lacks are an error.

    The model is one of --humanTRB, --humanTRA, --mouseTRB, ..., or a folder (--set_custom_model_VDJ); --help-all lists
    them.

    hpcvdj pgen does the same with AIRR tables, on all ranks and GPUs, and says which rows have no probability and why.

    Example: hpcvdj olga compute_pgen --humanTRB -i sequences.tsv -o pgens.tsv --v_in 1 --j_in 2
    """
    run = common.begin(launch)
    if not run.is_root:
        return
    if (infile is None) == (not sequences):
        raise InputError("give sequences, or a file of them with --infile, one of the two")
    if infile is not None and (v_mask or j_mask):
        raise InputError("--v_mask and --j_mask are of sequences as arguments; name the columns with --v_in and --j_in")
    from hpcvdj.recombination.symbols import read_alphabet

    custom = {} if alphabet_filename is None else read_alphabet(alphabet_filename).definitions()
    computing = _Computing(_model(model), custom, seq_type_out)
    if infile is not None:
        rows: Iterable[Row] = reading.rows(infile)
    else:
        rows = [Row(text, v_mask or "", j_mask or "", f"sequence {k + 1}") for k, text in enumerate(sequences or [])]
    separator = _separator(reading.raw_delimiter, reading.delimiter, infile)
    to = _separator(raw_delimiter_out, delimiter_out, outfile) or separator or "\t"
    _write((to.join(cells) for cells in computing.lines(rows)), outfile, overwrite=overwrite)


def _write(lines: Iterable[str], outfile: Path | None, *, overwrite: bool) -> None:
    """Write lines to a file, which appears when it is complete, or to standard output."""
    from hpcvdj.storage.files import atomic_path, require_writable

    if outfile is None:
        for line in lines:
            common.answer(line)
        return
    require_writable(outfile, overwrite=overwrite)
    with atomic_path(outfile, overwrite=overwrite) as temporary, open(temporary, "w", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in lines)
    common.say(f"written    {outfile}")


_SET = re.compile(r"\[([^\[\]]*)\]")
_REPEAT = re.compile(r"(.)\{(\d+)(?:,(\d+))?\}")
MOST_TEMPLATES = 10_000
"""The most sequences that a sequence with repeats may stand for."""


class _Computing:
    """Computes lines of probabilities; `custom` has symbols of amino acids and what they stand for."""

    def __init__(self, model: "Model", custom: Mapping[str, Sequence[str]], kind: str) -> None:
        self.model, self.custom, self.kind = model, custom, kind
        self._any = {segment: ",".join(template.allele for template in getattr(model, segment.lower()))
                     for segment in "VJ"}  # fmt: skip

    def lines(self, rows: Iterable[Row]) -> Iterator[list[str]]:
        """Yield the cells of each row."""
        unread: list[str] = []
        every = iter(rows)
        while part := list(itertools.islice(every, _AT_ONCE)):
            nucleotides = [k for k, row in enumerate(part) if row.text and not row.text.upper().strip("ACGT")]
            cells: dict[int, list[str]] = dict(self._of_nucleotides(part, nucleotides))
            others = sorted(set(range(len(part))).difference(nucleotides))
            cells |= dict(self._of_amino_acids(part, [k for k in others if part[k].text], unread))
            cells |= {k: [""] for k in others if not part[k].text}
            yield from (cells[k] for k in sorted(cells))
        if unread:
            log.warning("%d lines have no sequence that can be read, and are left out: %s", len(unread), few(unread))

    def _values(
        self, rows: Sequence[Row], texts: Sequence[str], field: "JunctionField", symbols: Any = None
    ) -> "list[Any]":
        """Return the probabilities of texts, by column.  Raise InputError for a gene that the model lacks."""
        import pyarrow as pa

        from hpcvdj.kernels.quantities import Pgen
        from hpcvdj.probabilities.settings import PgenSettings
        from hpcvdj.repertoires.inputs import Inputs
        from hpcvdj.repertoires.reading import reading_of
        from hpcvdj.repertoires.table import table_of
        from hpcvdj.values.compute import values_of

        for segment, name in (("V", "v"), ("J", "j")):
            for call in dict.fromkeys(getattr(row, name) for row in rows):
                unknown = [gene for gene in filter(None, call.split(",")) if self.model.find(segment, gene) is None]  # type: ignore[arg-type]
                if unknown:
                    source = next(row.source for row in rows if getattr(row, name) == call)
                    raise InputError(
                        f"{source}: {few(unknown)} is not in {self.model.name}; correct it, or leave it out"
                    )
        free = not any(row.v or row.j for row in rows)
        columns: dict[str, pa.Array] = {field: pa.array(texts, pa.string())}
        if not free:
            columns["v_call"] = pa.array([row.v or self._any["V"] for row in rows], pa.string())
            columns["j_call"] = pa.array([row.j or self._any["J"] for row in rows], pa.string())
        table = table_of(pa.table(columns))
        reading = reading_of([field], field, symbols, strict=False)
        settings = PgenSettings(genes="any" if free else "call")
        config = settings.config(amino_acids=field != "junction")
        values, *_ = values_of(Inputs((table,), config.reads(reading)), self.model, config)
        excluded = values[Pgen.excluded].to_pylist()
        for row, why in zip(rows, excluded, strict=True):
            if why:
                log.warning("%s: %s", row.source, why)
        return [values[name].to_pylist() for name in config.names]

    def _of_nucleotides(self, part: Sequence[Row], indices: Sequence[int]) -> Iterator[tuple[int, list[str]]]:
        from hpcvdj.recombination.alphabet import translate

        framed = [k for k in indices if len(part[k].text) % 3 == 0]
        texts = [part[k].text.upper() for k in framed]
        nt, aa = self._values([part[k] for k in framed], texts, "junction") if framed else ([], [])
        proteins = translate(texts) if texts else []
        in_frame = dict(zip(framed, zip(map(_text, nt), proteins, map(_text, aa), strict=True), strict=True))
        for k in indices:
            p_nt, protein, p_aa = in_frame.get(k, ("0", OUT_OF_FRAME, "0"))
            of_nt, of_aa = [part[k].text, p_nt], [protein, p_aa]
            yield k, {"all": of_nt + of_aa, "n": of_nt, "a": of_aa}[self.kind if self.kind == "all" else self.kind[0]]

    def _of_amino_acids(
        self, part: Sequence[Row], indices: Sequence[int], unread: list[str]
    ) -> Iterator[tuple[int, list[str]]]:
        from hpcvdj.recombination.symbols import RESERVED, STOP, Alphabet

        free = (chr(code) for code in range(33, 127))
        known = Alphabet.of(self.custom).symbols
        unused = (sign for sign in free if sign not in known and sign not in RESERVED and not sign.isalpha())
        symbols = dict(self.custom)
        # Junctions of amino acids cannot have a stop, so another symbol stands for it.
        sets = {STOP: next(unused)}
        symbols[sets[STOP]] = ["TAA", "TAG", "TGA"]
        asked, texts, sums = list[int](), list[str](), dict[int, float]()
        for k in indices:
            if "[]" in (text := part[k].text):
                unread.append(text)
                continue
            for members in dict.fromkeys(_SET.findall(text)):
                if members not in sets:
                    sets[members] = next(unused, "")
                    if not sets[members]:
                        raise InputError(f"{part[k].source}: too many different sets in brackets; split the file")
                    symbols[sets[members]] = list(members)
            plain = _SET.sub(lambda match: sets[match[1]], text).replace(STOP, sets[STOP])
            expanded = _expanded(plain, part[k].source)
            if "[" in text and len(set(map(len, expanded))) < len(expanded):
                # Sequences of one length may have members in common.
                members = {sign: own.replace(STOP, sets[STOP]) for own, sign in sets.items()}
                each = (itertools.product(*(members.get(sign, sign) for sign in one)) for one in expanded)
                expanded = _distinct(itertools.chain.from_iterable(each), part[k].source)
            wrong = set().union(*expanded).difference(known, sets.values()) | (set(text) & set(sets.values()))
            if not wrong.issubset("0123456789"):
                unread.append(text)
                continue
            sums[k] = 0.0
            if not wrong:
                asked += [k] * len(expanded)
                texts += expanded
        if asked:
            (values,) = self._values([part[k] for k in asked], texts, "junction_aa", Alphabet.of(symbols))
            for k, value in zip(asked, values, strict=True):
                sums[k] += math.nan if value is None else value
        yield from ((k, [part[k].text, _text(value)]) for k, value in sums.items())


def _expanded(text: str, source: str) -> list[str]:
    """Return the distinct sequences that a sequence with repeats stands for."""
    parts: list[list[str]] = []
    end = 0
    for match in _REPEAT.finditer(text):
        least, most = int(match[2]), int(match[3] or match[2])
        parts += [[text[end : match.start()]], [match[1] * number for number in range(least, most + 1)]]
        end = match.end()
    return _distinct(itertools.product(*parts, [text[end:]]), source)


def _distinct(every: Iterable[Sequence[str]], source: str) -> list[str]:
    """Return the distinct sequences that a sequence stands for, from the parts of each."""
    some = list(itertools.islice(every, MOST_TEMPLATES + 1))
    if len(some) > MOST_TEMPLATES:
        raise InputError(f"{source}: its repeats stand for more than {MOST_TEMPLATES:,} sequences; give fewer")
    return list(dict.fromkeys(map("".join, some)))


def _text(value: float | None) -> str:
    """Return a probability with all its digits, as Python writes it; nan if it is unknown."""
    return repr(math.nan if value is None else float(value))


@app.command("generate_sequences")
def generate_sequences(
    *,
    model: OlgaModel,
    number: Annotated[int, Option("sequences to draw", flags="-n --num_seqs", least=1)],
    outfile: Annotated[Path | None, options.valued("--outfile -o", "FILE", "File to write, instead of output.")] = None,
    seed: int | None = setting("the same seed gives the same sequences, though not those of OLGA", None,
                               flags="--seed", least=0, unset="another one each time"),
    seq_type: SequenceType = setting("which sequences are written", "all", flags="--seq_type"),
    record_genes_off: bool = setting("without V and J genes", False, flags="--record_genes_off"),
    delimiter: Delimiter | None = setting("what separates columns", None, flags="-d --delimiter",
                                          unset="a comma in .csv, else a tab"),
    raw_delimiter: str | None = setting("the same as any text", None, flags="--raw_delimiter", more=True),
    conserved_j_residues: Literal["FVW"] = setting("other residues cannot be asked for", "FVW",
                                                   flags="--conserved_J_residues", more=True),
    display: DisplaySettings,
    launch: Launch,
    overwrite: Overwrite = False,
) -> None:  # fmt: skip
    """Draw productive sequences as olga-generate_sequences does: its options and its columns.

    A line for each sequence: nucleotides, amino acids, V gene, J gene. The model is one of --humanTRB, --humanTRA, ...

    hpcvdj generate writes AIRR tables, on all ranks
    and GPUs.

    Example: hpcvdj olga generate_sequences --humanTRB -n 1000 -o drawn.tsv
    """
    run = common.begin(launch)
    if not run.is_root:
        return
    import secrets

    from hpcvdj.generation.generate import generate
    from hpcvdj.generation.settings import GenerationSettings
    from hpcvdj.kernels.backends import open_backend

    plan = GenerationSettings(number, seed=secrets.randbits(31) if seed is None else seed, productive=True)
    names = {"all": ["junction", "junction_aa"], "n": ["junction"], "a": ["junction_aa"]}[
        seq_type if seq_type == "all" else seq_type[0]
    ]  # fmt: skip
    to = _separator(raw_delimiter, delimiter, outfile) or "\t"

    def lines() -> Iterator[str]:
        for batch in generate(_model(model), plan, open_backend("cpu"), run.alone()):
            columns = [batch[name].to_pylist() for name in names]
            if not record_genes_off:
                columns += [
                    [call.partition("*")[0] for call in batch[name].to_pylist()] for name in ("v_call", "j_call")
                ]
            yield from map(to.join, zip(*columns, strict=True))

    _write(lines(), outfile, overwrite=overwrite)
