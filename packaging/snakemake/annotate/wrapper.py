"""Snakemake wrapper of hpcvdj annotate: receptors of known specificity, and how many hits chance makes."""

from snakemake.shell import shell

extra = snakemake.params.get("extra", "")  # noqa: F821
log = snakemake.log_fmt_shell(stdout=True, stderr=True)  # noqa: F821
shell(
    "hpcvdj annotate {snakemake.input.tables} --database {snakemake.input.database} --model {snakemake.params.model} "
    "--output {snakemake.output.folder} "
    "--threads {snakemake.threads} {extra} {log}"
)
