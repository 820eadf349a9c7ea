
(( $+functions[_pgstrata_sides] )) ||
_pgstrata_sides() {
    local folder=${PREFIX%%:*}
    local -a cases=($folder/trials/*(N/:t))
    [[ $PREFIX == *:* ]] && compadd -- $folder:${^cases}
    compadd -- @SIDES@
    [[ $PREFIX == *:* ]] || _files
}

(( $+functions[_pgstrata_plans] )) ||
_pgstrata_plans() {
    compadd -- @PLANS@
    _files
}
