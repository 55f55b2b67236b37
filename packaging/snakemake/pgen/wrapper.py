"""Snakemake wrapper of hpcvdj pgen: the generation probability of each junction."""

from snakemake.shell import shell

extra = snakemake.params.get("extra", "")  # noqa: F821
log = snakemake.log_fmt_shell(stdout=True, stderr=True)  # noqa: F821
shell(
    "hpcvdj pgen {snakemake.input.tables} --model {snakemake.params.model} --output {snakemake.output.table} "
    "--threads {snakemake.threads} {extra} {log}"
)
