"""Snakemake wrapper of hpcvdj enrich: clonotypes with more neighbours than chance explains."""

from snakemake.shell import shell

extra = snakemake.params.get("extra", "")  # noqa: F821
log = snakemake.log_fmt_shell(stdout=True, stderr=True)  # noqa: F821
shell(
    "hpcvdj enrich {snakemake.input.tables} --model {snakemake.params.model} --output {snakemake.output.table} "
    "--threads {snakemake.threads} {extra} {log}"
)
