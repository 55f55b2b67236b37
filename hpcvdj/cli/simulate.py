"""`hpcvdj simulate`."""

from hpcvdj.cli import common, options
from hpcvdj.cli.drawing import write_drawn
from hpcvdj.generation.settings import SimulationSettings
from hpcvdj.repertoires.settings import GermlineSettings
from hpcvdj.runs.settings import Overwrite


def command(
    germline: options.GermlineTables,
    output: options.OutputTable,
    plan: SimulationSettings,
    alleles: GermlineSettings,
    overwrite: Overwrite = False,
) -> None:
    """Make in silico junctions: V, D and J forms and n-nucleotides drawn at random.

    Every pathway of a V-J pair and one n-length is equally likely to be drawn. Draws that are too long, that repeat a
    junction of their V-J pair or, with --productive, that are out of frame or have a stop codon, are drawn again. The
    sizes of the V-J pairs decrease as a power of their rank. Functional V and J genes are used, each by its first
    listed allele. `hpcvdj generate` draws from a recombination model instead, in which pathways are not equally likely.

    Example: hpcvdj simulate -g mouse_trb --productive -n 1000 --seed 1 -o mouse.tsv
    """
    run = common.begin()
    if not run.is_root:
        return
    from hpcvdj.generation.simulate import simulate

    write_drawn(run, simulate(alleles.read(germline), plan), output, plan.seed, overwrite=overwrite)
