
_pgstrata_sides() {
    local word="${COMP_LINE:0:COMP_POINT}" rest="" one
    word="${word##* }"
    _pgstrata "$@"
    if [[ "${COMP_CWORD}" -gt 1 && " plan run cut submit " == *" ${COMP_WORDS[1]} "* && "${word}" != -* && "$3" != --* ]]; then
        COMPREPLY=( $(compgen -W "@PLANS@" -- "${word}") $(compgen -f -- "${word}") )
        return 0
    fi
    if [[ " ${COMP_WORDS[*]:1:COMP_CWORD-1} " != *" compare "* || "${word}" == -* || "$3" == --* ]]; then
        return 0
    fi
    COMPREPLY=( $(compgen -W "@SIDES@" -- "${word}") )
    if [[ "${word}" == *:* ]]; then
        rest="${word%:*}:"
        for one in "${word%%:*}"/trials/*/; do
            one="${one%/}"
            one="${word%%:*}:${one##*/}"
            [[ "${one}" == "${word}"* && "${one}" != *'*' ]] && COMPREPLY+=( "${one}" )
        done
    else
        COMPREPLY+=( $(compgen -f -- "${word}") )
    fi
    if [[ "${COMP_WORDBREAKS}" == *:* && -n "${rest}" ]]; then
        COMPREPLY=( "${COMPREPLY[@]#"${rest}"}" )
    fi
    return 0
}

complete -F _pgstrata_sides -o bashdefault -o default pgstrata
