"""The repertoires of a page: the junctions of each individual at each locus, as the tables of findings tell them."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hpcvdj.chance.clone_sizes import CloneSizes
from hpcvdj.reports.elements import printable
from hpcvdj.reports.outputs import Finding, Outputs
from hpcvdj.reports.survey import Survey


@dataclass
class Repertoire:
    """The junctions of an individual at a locus.

    name    what the page calls it
    loci    empty if they are not known
    path    the first file that tells it
    tables  the SHA-256 of the tables that were read, those of other individuals among them
    sizes   of its clones, from the first file that records them; None if none does
    """

    name: str
    individual: str
    loci: frozenset[str]
    path: Path
    tables: frozenset[str]
    sizes: CloneSizes | None

    @property
    def reads(self) -> int:
        """The number of reads; 0 if it is not known."""
        return 0 if self.sizes is None else self.sizes.total

    def may_be(self, other: "Repertoire") -> bool:
        """Whether another file can be about the same junctions: of the same locus, and of the same table or sizes.

        What is not known makes no difference.
        """
        of_table = self.tables & other.tables or not self.tables or not other.tables
        recorded, others = (each.sizes and each.sizes.recorded() for each in (self, other))
        return _agree(self.loci, other.loci) and (bool(of_table) or recorded == others)

    def add(self, other: "Repertoire") -> None:
        """Take what another file knows about the same junctions."""
        self.loci = self.loci or other.loci
        self.tables |= other.tables
        self.sizes = self.sizes or other.sizes


def _agree(loci: frozenset[str], others: frozenset[str]) -> bool:
    return loci == others or not loci or not others


def repertoires(outputs: Outputs) -> list[Repertoire]:
    """The repertoires that the findings of a page tell; one of `MISREAD` for facts of another layout.

    Two files of an individual are about one repertoire if they may be.
    """
    of_individual = defaultdict[str, list[Repertoire]](list)
    for each in (each for finding in outputs.findings for each in _told(outputs, finding)):
        known = of_individual[each.individual]
        same = next((own for own in known if own.may_be(each)), None)
        if same is None:
            known.append(each)
        else:
            same.add(each)
    found = [each for known in of_individual.values() for each in known]
    for each in found:
        each.name = outputs.with_loci(each.individual, each.loci)
    often = Counter(each.name for each in found)
    for each in found:
        if often[each.name] > 1:
            each.name += f" ({outputs.labels[each.path]})"
    return found


def _told(outputs: Outputs, finding: Finding) -> Iterator[Repertoire]:
    """What a table tells of each of its individuals."""
    tables = frozenset(str(digest) for _, digest, *_ in finding.facts.get("tables") or () if digest)
    recorded = {
        printable(name): CloneSizes.from_recorded(sizes)
        for name, sizes in dict(finding.facts.get("clones") or {}).items()
    }
    sizes: dict[str, CloneSizes | None] = dict.fromkeys(map(outputs.individual, finding.names))
    # A table of a single sample may call it otherwise; of several samples, each has its own name.
    if len(recorded) == len(sizes) == 1:
        recorded = dict(zip(sizes, recorded.values(), strict=True))
    elif finding.sample and recorded:
        sizes = {}
    for name, own in (sizes | recorded).items():
        yield Repertoire(name, name, finding.loci, finding.path, tables, own)


def repertoire_of(found: list[Repertoire], outputs: Outputs, survey: Survey, sample: int) -> Repertoire | None:
    """The repertoire of a sample of `count` or `pgen`; None if there is none, or if it is not known which one it is."""
    individual, loci = outputs.individual(survey.samples[sample]), survey.loci(sample)
    same = [each for each in found if each.individual == individual and _agree(loci, each.loci)]
    of_table = [each for each in same if each.tables & survey.tables]
    chosen = of_table if len(same) > 1 else same
    return chosen[0] if len(chosen) == 1 else None
