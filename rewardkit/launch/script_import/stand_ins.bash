((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)) || exit 97
# What a script finds in place of commands. Bash is restricted before it reads the script, on the last line.
# Descriptors: 0 is the script, and then lines for what it reads; 3 takes records; 5 and 6 hold a token for one
# record at a time; 8 is /dev/null. What only a run can tell is a mark: a text in characters of a private plane,
# each followed by __SIGN.
set +h -f
for LC_CTYPE in C.UTF-8 C.utf8 en_US.UTF-8 zh_CN.UTF-8; do # marks are characters, not bytes
    printf -v __M '\Uf0000'
    [[ $__M == ? ]] && break
done 2>&8
[[ $__M == ? ]] || exit 96
unset BASH_ENV ENV SHELL HISTFILE HOSTNAME HOSTTYPE MACHTYPE OSTYPE RANDOM SRANDOM SECONDS EPOCHSECONDS EPOCHREALTIME
unset COLUMNS LINES DIRSTACK OLDPWD SHLVL
__M=$'[\U000f0000-\U000ffffd]' __FILE=' -[bcdefghkprsuwxGLNOS] ' __FLIPS= __SIGN= __LINE=1 __B=99999 __HIT=
__SOURCE=("$0") __SLEEPS=0
IFS= read -r -d '' __TEXT
exec 3>&1 >&8
__record() { # KIND WORD...
    local __token
    IFS= builtin read -r -N 1 -u 5 __token
    builtin printf '%s\0' "$1" "$__LINE" $(($# - 1)) "${@:2}" >&3
    builtin printf x >&6
}
__decide() { # STATUS: returns it, or the other one where the importer tries that
    case " $__FLIPS " in *" $__LINE "*) return $((1 - $1)) ;; esac
    return "$1"
}
command_not_found_handle() {
    local __name __chars __exports=() __text="\$($*)" IFS=$'\n'
    if [[ $1 == python* && ${2-} == -c && ${3-} =~ ^\ *import\ +([A-Za-z_0-9]+)[A-Za-z_0-9.,\ ]*\;?\ *$ ]]; then
        __record probe "${BASH_REMATCH[1]}"
        [[ " $__MODULES " == *" ${BASH_REMATCH[1]} "* ]]
        return
    fi
    for __name in $(builtin compgen -e); do __exports+=("$__name=${!__name-}"); done
    __record command $# "$@" "DEVICE=${DEVICE-}" "${__exports[@]}"
    __text=${__text:0:80} __text=${__text//[!$'\1'-$'\uffff']/?}
    [[ $__text =~ ${__text//?/(.)} ]]
    __chars=("${BASH_REMATCH[@]:1}")
    builtin printf -v __text "\\\\Uf%04x$__SIGN" "${__chars[@]/#/\'}"
    builtin printf "$__text"
    __decide 0
}
__stand_in() { eval "function $1 { (command_not_found_handle $1 \"\$@\"); }"; }
__settings() { (command_not_found_handle "$@"); }
test() { # what nothing sets is empty, and what is not known is false
    local IFS=' '
    case " $*" in
        *$'\U000f0028'* | *$__FILE*) __record test "$@"; __decide 1 ;;
        *$__M*) __record empty "$@"; builtin [ "${@//$__M$__SIGN/}" ] ;;
        *) builtin [ "$@" ] ;;
    esac
}
[() { test "${@:1:$#-1}"; }
__debug() { # LINE WORD...: looks whether a condition depends on marks; the words are those of the shell
    (($1 >= __B)) || return 0
    __LINE=$(($1 - __B + 1))
    shift
    local __name __values=$BASH_COMMAND IFS=' '
    case $BASH_COMMAND in
        'for '*) eval "__values=(${BASH_COMMAND#for * in })" ;;
        'case '*) __values=${BASH_COMMAND#case }; eval "__values=(${__values% in })" ;;
    esac
    __values="${__values[*]}" __HIT=
    for __name in ${BASH_COMMAND//[!A-Za-z0-9_]/ }; do
        [[ $__name == [0-9]* || ${!__name-} != *$__M* ]] || __values+=${!__name}
    done
    case $BASH_COMMAND$__values in
        'for '*$__M*) __record test "$__values"; __decide 0 ;; # no round, where the importer tries that
        'case '*$__M*) __record case "$__values" ;;
        'for '* | 'case '*) ;;
        *$__M* | *'$('* | *'`'* | '[['*$__FILE*) __HIT=$__values ;;
    esac
}
__decided() { # stands after every [[ and ((
    local __status=$?
    [[ $__HIT ]] || return $__status
    __record test "$__HIT"
    __decide 1
}
__path() { # PATH: sets __P to it from the root, without . and ..
    local __part __rest=$1 IFS=/
    [[ $1 == /* ]] || __rest=$PWD/$1
    __P=
    for __part in $__rest; do
        case $__part in '' | .) ;; ..) __P=${__P%/*} ;; *) __P+=/$__part ;; esac
    done
    __P=${__P:-/}
}
cd() {
    while [[ ${1-} == -? ]]; do shift; done
    if [[ ${1-} == - ]]; then __P=${OLDPWD-$PWD}; else __path "${1-$HOME}"; fi
    OLDPWD=$PWD PWD=$__P
}
pushd() { cd "$@"; }
popd() { cd -; }
pwd() { builtin echo "$PWD"; }
realpath() { __path "${*: -1}"; builtin echo "$__P"; }
readlink() { realpath "$@"; }
dirname() {
    local __p=${*: -1}
    __p=${__p%/}
    case $__p in ?*/*) builtin echo "${__p%/*}" ;; /*) builtin echo / ;; *) builtin echo . ;; esac
}
basename() {
    local __p=${1%/}
    __p=${__p##*/}
    builtin echo "${__p%"${2-}"}"
}
cat() {
    local __input
    if [[ ${1--} != - ]]; then (command_not_found_handle cat "$@"); return; fi
    IFS= builtin read -r -d '' __input || :
    builtin printf %s "$__input"
}
bash() {
    while [[ ${1-} == -* ]]; do
        if [[ $1 == -*c* ]]; then (eval "$2"); return; fi
        shift
    done
    if (($#)); then (command_not_found_handle bash "$@"); else (eval "$(cat)"); fi
}
sh() { bash "$@"; }
xargs() { "$@" $(cat); }
command() {
    case ${1-} in -v | -V) (command_not_found_handle command "$@") ;; -p | --) shift; "$@" ;; *) "$@" ;; esac
}
exec() {
    while [[ ${1-} == -* ]]; do shift; done
    if (($#)); then "$@"; builtin exit; fi
}
sleep() { ((++__SLEEPS < 100)) || builtin exit; } # it waits for something that does not come
source() { :; }
.() { :; }
BASH_XTRACEFD=8
readonly PATH SHELL ENV BASH_ENV HISTFILE # bash that becomes restricted later does not see to it
trap '__record end' EXIT
trap 'case $BASH_COMMAND in "[[ "* | "(("* | "case "* | "for "*) __debug "$LINENO" "$@" ;;'\
' *) ((LINENO < __B)) || __LINE=$((LINENO - __B + 1)) ;; esac' DEBUG
enable -n bg bind caller complete compopt dirs disown fc fg hash help history jobs kill logout suspend times trap
enable -n ulimit umask enable
shopt -s extdebug
set -Tur
__B=$LINENO; eval "$__TEXT"; wait; __B=99999 __LINE=0
