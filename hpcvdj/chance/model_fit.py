"""How a model fits the rows of tables: what the check found, for facts, and in words."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hpcvdj.chance.calls import CONTRADICTED, RARE, more_than_chance
from hpcvdj.chance.fit import GeneFit, LengthFit, at_least, is_told, times_text, two_digits
from hpcvdj.errors import few, option, told

MOST_IMPOSSIBLE = 0.5
"""A table is refused if the model cannot make such a share of its rows."""

MANY_IMPOSSIBLE = 0.1
"""The share of impossible rows that is worth a line."""

MOST_EXCLUDED = 0.01
"""The largest share of rows with right calls that are excluded together with wrong ones."""

REMEDIES = {
    "broken": "; tests that need its probabilities leave it out",
    "truncated": "; tests that need its probabilities leave it out",
    "habit": " ({ties=auto}, of commands that have it, takes them together)",
}
"""What to do about each kind of finding."""


@dataclass(frozen=True)
class ModelFit:
    """How a model fits a sample of a table's rows.

    rows          distinct rows of the sample that have genes of the model
    impossible    share of these that the model cannot make
    lacking       further rows, with genes or alleles that the model lacks
    lacking_alleles  rows with an allele that the model lacks, of a gene that it has
    unmade_alleles   alleles that the model (nearly) never chooses, though others of the gene, and their rows
    tables        tables, or repertoires, of which the model cannot make half of the rows
    genes         genes that fail
    lengths       lengths that fail
    calls         productive rows whose calls were compared with other genes
    contradicted  how many of these have a V call, a J call, or both, that contradict the bases
    alleles       rare alleles of the model: the name, the rows that no other allele of the gene makes easily, and the
                  compared rows of the gene
    examples      rows whose calls contradict the bases
    better        a named model under which the rows are more likely, and the gain in nats per row
    compared      whether there were enough rows to judge genes and lengths
    keep_misfits  whether tests keep genes that the model makes wrongly
    force         whether tables are accepted that the model cannot make
    """

    rows: int = 0
    impossible: float = 0.0
    lacking: int = 0
    lacking_alleles: int = 0
    unmade_alleles: tuple[tuple[str, int], ...] = ()
    tables: tuple[str, ...] = ()
    genes: tuple[GeneFit, ...] = ()
    lengths: tuple[LengthFit, ...] = ()
    calls: int = 0
    contradicted: tuple[tuple[str, int], ...] = ()
    alleles: tuple[tuple[str, int, int], ...] = ()
    examples: tuple[str, ...] = ()
    better: tuple[str, float] | None = None
    compared: bool = False
    keep_misfits: bool = False
    force: bool = False

    @property
    def broken(self) -> frozenset[str]:
        """The genes whose junctions tests leave out."""
        if self.keep_misfits:
            return frozenset()
        return frozenset(gene.gene for gene in self.genes if gene.finding in ("broken", "truncated"))

    @property
    def miscalled(self) -> int:
        """The number of rows with calls that contradict the bases; 0 if right calls explain it by chance."""
        number = sum(rows for _, rows in self.contradicted)
        # Without any, scipy is not needed, which takes a fifth of a second to import.
        return number if number and more_than_chance(number, self.calls) else 0

    @property
    def miscall_bound(self) -> float:
        """The ε of `hpcvdj.chance.calls.contradicted` with which calls exclude rows; 0 if no row is to be excluded.

        It is the share of wrong calls, if right calls do not explain so many: a call that makes its junction less than
        ε times as probable as other genes do is more likely wrong than right.  At most `MOST_EXCLUDED` of the right
        calls go with the wrong ones.
        """
        if self.keep_misfits or not self.miscalled:
            return 0.0
        return min(max(CONTRADICTED, self.miscalled / self.calls), MOST_EXCLUDED)

    @property
    def rare_alleles(self) -> list[tuple[str, int, int]]:
        """The members of `alleles` that are more common in the table than a rare allele can be."""
        return [allele for allele in self.alleles if at_least(allele[1], allele[2]) > RARE]

    def facts(self) -> dict[str, Any]:
        """Return the fit as JSON values, by the key `fit`."""
        derived = {
            "broken": sorted(self.broken), "contradicted": dict(self.contradicted), "miscalled": self.miscalled,
            "alleles": self.rare_alleles,
        }  # fmt: skip
        return {"fit": asdict(self) | derived}

    def lines_of_alleles(self) -> list[str]:
        """Return what else there is to say if the probabilities of rows are those of their alleles, not of genes."""
        if not self.unmade_alleles:
            return []
        names = few([f"{name} ({rows:,})" for name, rows in self.unmade_alleles])
        unmade = sum(rows for _, rows in self.unmade_alleles)
        return [
            f"{unmade:,} of the rows that were checked have alleles that the model (nearly) never makes, of genes that "
            f"it makes: {names}; their probability is 0, or far too small: {option('missing_alleles', 'gene')} takes "
            "all alleles of the gene"
        ]

    def lines_of_calls(self) -> list[str]:
        """Return what there is to say of calls that contradict the bases."""
        if not self.miscalled:
            return []
        return [
            f"at least {self.miscalled:,} of {self.calls:,} rows have a call that contradicts the bases, such as "
            f"{self.examples[0]}"
        ]

    def lines(self) -> list[str]:
        """Return a line for each finding, the most serious first."""
        order = ("broken", "truncated", "improbable", "unmade", "habit", "usage")
        lines = []
        if self.better is not None:
            name, nats = self.better
            lines.append(f"{name} fits better: most rows are about {times_text(nats / np.log(10))} times as probable")
        every = self.rows + self.lacking
        unfit = (self.impossible * self.rows + self.lacking) / max(every, 1)
        if unfit >= MANY_IMPOSSIBLE:
            lines.append(
                f"{100 * unfit:.0f} % of {every:,} rows are impossible under the model, or have genes or alleles that "
                "it lacks: are they of another species or locus?"
            )
        if self.lacking_alleles >= MANY_IMPOSSIBLE * every > 0:
            lines.append(
                f"{self.lacking_alleles:,} of {every:,} rows have alleles that the model lacks, of genes that it has: "
                f"{option('missing_alleles', 'gene')} takes all alleles of the gene"
            )
        if self.impossible >= MOST_IMPOSSIBLE:
            return lines
        shown = [gene for gene in self.genes if is_told(gene.finding, gene.share)]
        # What explains other findings goes first.
        genes = sorted(shown, key=lambda gene: (order.index(str(gene.finding)), -gene.rows))
        of_genes = [(gene.finding, f"{gene}{told(REMEDIES.get(str(gene.finding), ''))}") for gene in genes]
        lines += [line for finding, line in of_genes if finding in ("broken", "truncated")]
        lines += self.lines_of_calls()
        lines += [
            f"{name}: only this allele makes {two_digits(100 * rows / of)} % of the {of:,} rows of its gene, and the "
            f"model hardly ever chooses it: the probabilities of these rows are too low{REMEDIES['broken']}"
            for name, rows, of in self.rare_alleles
        ]
        lines += [line for finding, line in of_genes if finding not in ("broken", "truncated")]
        return [*lines, *map(str, self.lengths)]


UNCHECKED = ModelFit()
"""The fit of a table that was not compared."""
