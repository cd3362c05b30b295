# SPDX-License-Identifier: Apache-2.0
# bash completion of fathom: commands and options are asked of the program itself.
# Installed by make install; by hand:  source contrib/completion/fathom.bash
_fathom()
{
    local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]}
    local list
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        list=$("$program" --print-options 2>/dev/null | cut -f1)
        mapfile -t COMPREPLY < <(compgen -W "$list help --help --version" -- "$word")
    elif [[ $word == -* ]]; then
        list=$("$program" "${COMP_WORDS[1]}" --print-options 2>/dev/null | cut -f1 | tr -d =)
        mapfile -t COMPREPLY < <(compgen -W "$list --help" -- "$word")
    elif [ "${COMP_WORDS[1]}" = help ]; then
        list=$("$program" --print-options 2>/dev/null | cut -f1)
        mapfile -t COMPREPLY < <(compgen -W "$list" -- "$word")
    fi
}
complete -o default -F _fathom fathom
