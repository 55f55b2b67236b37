process HPCVDJ_PGEN {
    tag "$meta.id"
    label 'process_medium'

    conda "${moduleDir}/environment.yml"
    container "hpcvdj:1.0.0"

    input:
    tuple val(meta), path(table)
    val model

    output:
    tuple val(meta), path("${prefix}.tsv.gz")     , emit: table
    tuple val(meta), path("${prefix}.tsv.gz.json"), emit: facts
    path "versions.yml", emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    prefix = task.ext.prefix ?: "${meta.id}.pgen"
    """
    hpcvdj pgen \\
        ${table} \\
        --model ${model} \\
        --output ${prefix}.tsv.gz \\
        --threads ${task.cpus} \\
        ${args}

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        hpcvdj: \$(hpcvdj --version | sed 's/hpcvdj //')
    END_VERSIONS
    """

    stub:
    prefix = task.ext.prefix ?: "${meta.id}.pgen"
    """
    echo "" | gzip > ${prefix}.tsv.gz
    touch ${prefix}.tsv.gz.json

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        hpcvdj: \$(hpcvdj --version | sed 's/hpcvdj //')
    END_VERSIONS
    """
}
