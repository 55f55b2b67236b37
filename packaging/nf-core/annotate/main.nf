process HPCVDJ_ANNOTATE {
    tag "$meta.id"
    label 'process_medium'

    conda "${moduleDir}/environment.yml"
    container "hpcvdj:1.0.0"

    input:
    tuple val(meta), path(tables)
    path database
    val model

    output:
    tuple val(meta), path("${prefix}/*.epitopes.tsv")     , emit: epitopes
    tuple val(meta), path("${prefix}/*.hits.tsv")         , emit: hits
    tuple val(meta), path("${prefix}/*.epitopes.tsv.json"), emit: facts
    path "versions.yml", emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    prefix = task.ext.prefix ?: "${meta.id}.annotated"
    """
    hpcvdj annotate \\
        ${tables} \\
        --database ${database} \\
        --model ${model} \\
        --output ${prefix} \\
        --threads ${task.cpus} \\
        ${args}

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        hpcvdj: \$(hpcvdj --version | sed 's/hpcvdj //')
    END_VERSIONS
    """

    stub:
    prefix = task.ext.prefix ?: "${meta.id}.annotated"
    """
    mkdir ${prefix}
    touch ${prefix}/sample.epitopes.tsv ${prefix}/sample.hits.tsv ${prefix}/sample.epitopes.tsv.json

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        hpcvdj: \$(hpcvdj --version | sed 's/hpcvdj //')
    END_VERSIONS
    """
}
