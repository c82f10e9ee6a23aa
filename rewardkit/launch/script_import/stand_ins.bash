((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)) || exit 97
# What a script finds in place of commands. Bash reads this before it is restricted; after that a
# builtin that is disabled stays so. 3: questions and calls to the importer, 4: its answers, 5 and 6: a token,
# 7: the script, 8: /dev/null. An answer is a piece of bash.
set +h
PATH=/nonexistent
unset BASH_ENV ENV HOSTNAME HOSTTYPE MACHTYPE OSTYPE RANDOM SRANDOM SECONDS EPOCHSECONDS EPOCHREALTIME
unset COLUMNS LINES DIRSTACK OLDPWD SHLVL
__T=$1 __S= __A= __D=() PWD=$2
IFS= builtin read -r -d '' -u 7 __TEXT
shift 2
__send() {
    local LC_ALL=C IFS=$'\x1f' all
    all="$*"
    while builtin [ -n "$all" ]; do
        builtin printf '%s\x1f%s\0' "$BASHPID" "${all:0:1500}" >&3
        all=${all:1500}
    done
    builtin printf '%s\x1f\0' "$BASHPID" >&3
}
__ask() {
    local __token
    IFS= builtin read -r -N 1 -u 5 __token # one question at a time, of all processes
    __send "$@"
    IFS= builtin read -r -d '' -u 4 __A
    builtin printf x >&6
}
__x() {
    if builtin [ $# = 0 ]; then return 0; fi
    case $(builtin type -t -- "$1") in
        function | builtin) "$@" ;;
        *) __command "$((BASH_LINENO[0] - __B))" "$@" ;;
    esac
}
command_not_found_handle() { __command "$((BASH_LINENO[0] - __B))" "$@"; }
__command() {
    local __input= __state= IFS=' '
    case ${2##*/} in
        cat | tr | xargs | bash | sh | zsh | dash) IFS= builtin read -r -d '' __input || : ;;
    esac
    case " $* " in *.py\ * | *" -m "* | *=*) __state=$(builtin declare -p) ;; esac
    __ask command "$1" "$__S" "$PWD" "$__input" "$__state" "${@:2}"
    eval "$__A"
}
__t() {
    case $1 in *"$__T"*) __send hit "$1" ;; esac
    builtin printf %s "$1"
}
__case() {
    case "${*:2}" in *"$__T"*) __ask case "$1" "${*:2}" ;; esac
    builtin printf %s "${*:2}"
}
__decide() { __ask decide "$2" "$3" "$1"; eval "$__A"; }
__for() { __ask for "$@"; eval "$__A"; }
__names() {
    local __name
    for __name in "${@:2}"; do
        if builtin [ -z "${!__name+x}" ]; then __send unset "$1" "$__name"; else __t "${!__name}" >&8; fi
    done
}
__marks() {
    if builtin [ -z "${!2+x}" ]; then
        case $1 in "$__T"*) builtin printf %s "$1" ;; esac
    else
        case ${!2} in *"$__T"*) builtin printf %s "${!2}" ;; esac
    fi
}
__argument() { if builtin [ ${#FUNCNAME[@]} = 1 ]; then builtin printf %s "$1"; fi; }
__math() {
    local IFS=' '
    case $2 in *"$__T"*) builtin printf %s "$2"; return ;; esac
    local __rest=$2 __name
    while [[ $__rest =~ [A-Za-z_][A-Za-z_0-9]* ]]; do
        __name=${BASH_REMATCH[0]} __rest=${__rest#*"${BASH_REMATCH[0]}"}
        case " ${*:3} " in *" $__name "*) continue ;; esac
        if builtin [ -z "${!__name+x}" ]; then __ask unset_number "$1" "$__name" "$2"; eval "$__A"; return; fi
        case ${!__name} in *"$__T"*) builtin printf %s "${!__name}"; return ;; esac
    done
    builtin printf %s "$(($2))"
}
[() { __ask test "$((BASH_LINENO[0] - __B))" "${@:1:$#-1}"; eval "$__A"; }
test() { __ask test "$((BASH_LINENO[0] - __B))" "$@"; eval "$__A"; }
__eval() { __ask eval "$((BASH_LINENO[0] - __B))" "$*"; eval "$__A"; }
printf() {
    case "$*" in *"$__T"*)
        if builtin [ "$1" = -v ]; then builtin printf -v "$2" %s "${*:3}"; else builtin echo "$*"; fi ;;
        *) builtin printf "$@" ;;
    esac
}
command() {
    case $1 in
        -v | -V) __command "$((BASH_LINENO[0] - __B))" command "$@" ;;
        -p | --) shift; "$@" ;;
        *) "$@" ;;
    esac
}
exec() { while builtin [ "${1:0:1}" = - ]; do shift; done; if builtin [ $# != 0 ]; then __x "$@"; builtin exit; fi; }
cd() { OLDPWD=$PWD; __ask cd "$PWD" "$@"; eval "$__A"; }
pushd() { __D+=("$PWD"); cd "$@"; }
popd() { cd "${__D[@]: -1}"; builtin unset '__D[-1]'; }
pwd() { builtin echo "$PWD"; }
source() { __send source "$((BASH_LINENO[0] - __B))" "$1"; }
.() { source "$@"; }
exit() { __send exit "$((BASH_LINENO[0] - __B))"; builtin exit "$@"; }
builtin readonly -f __eval __send __ask __x __command __t __case __decide __for __names __marks __math __argument
HISTFILE= ENV= BASH_ENV=
builtin readonly __T PATH ENV BASH_ENV HISTFILE
__SOURCE=("$0")
builtin trap '__send failed "$((LINENO - __B))"' ERR
enable -n bg bind caller compgen complete compopt dirs disown fc fg hash help history jobs kill logout
enable -n suspend times trap ulimit umask wait enable
set -r
__B=$LINENO
eval "$__TEXT"
__send end
