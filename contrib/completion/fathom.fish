# SPDX-License-Identifier: Apache-2.0
# fish completion of fathom: commands and options are asked of the program itself.
function __fathom_options
    set -l words (commandline -opc)
    test (count $words) -ge 2; and $words[1] $words[2] --print-options 2>/dev/null | string replace -r '=?\t' \t
end
function __fathom_commands
    set -l words (commandline -opc)
    $words[1] --print-options 2>/dev/null
end
complete -c fathom -n 'test (count (commandline -opc)) -eq 1' -f -a '(__fathom_commands)'
complete -c fathom -n 'test (count (commandline -opc)) -ge 2; and string match -q -- "-*" (commandline -ct)' -f -a '(__fathom_options)'
