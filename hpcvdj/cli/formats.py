"""`hpcvdj formats`."""

from hpcvdj.cli import common


def command() -> None:
    """List the formats of tables that can be read, by the names that --format takes.

    Without --format, the header of a table says its format.

    Example: hpcvdj convert clones.txt --format mixcr -o clones.tsv
    """
    if not common.begin().is_root:
        return
    from hpcvdj.repertoires.formats.format import readable

    rows = [[name, kind.summary] for name, kind in readable().items()]
    common.print_table(common.console(), ["format", "tables"], rows, left=2)
