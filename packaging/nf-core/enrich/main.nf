process HPCVDJ_ENRICH {
    tag "$meta.id"
    label 'process_medium'

    conda "${moduleDir}/environment.yml"
    container "hpcvdj:1.0.0"

    input:
    tuple val(meta), path(table)
    val model

    output:
    tuple val(meta), path("${prefix}.tsv")     , emit: clonotypes
    tuple val(meta), path("${prefix}.tsv.json"), emit: facts
    path "versions.yml", emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    prefix = task.ext.prefix ?: "${meta.id}.enriched"
    """
    hpcvdj enrich \\
        ${table} \\
        --model ${model} \\
        --output ${prefix}.tsv \\
        --threads ${task.cpus} \\
        ${args}

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        hpcvdj: \$(hpcvdj --version | sed 's/hpcvdj //')
    END_VERSIONS
    """

    stub:
    prefix = task.ext.prefix ?: "${meta.id}.enriched"
    """
    touch ${prefix}.tsv ${prefix}.tsv.json

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        hpcvdj: \$(hpcvdj --version | sed 's/hpcvdj //')
    END_VERSIONS
    """
}
