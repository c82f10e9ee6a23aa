"""A hostile script leaves no file, no process and no connection, and ends within its limits."""

import os
import socket
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest

from rewardkit.errors import RewardkitError
from rewardkit.isolate.child_process import ChildProcess
from rewardkit.launch.script_import import script_runs
from rewardkit.launch.script_import.importer import MAX_SCRIPT, import_script

MAIN = "python3 -m verl.trainer.main_ppo"

#: Ways to run a program, to write, to remove, or to connect; `{0}` is a folder, `{1}` a port.
ATTACKS = {
    "a path": "/bin/touch {0}/out; /usr/bin/env touch {0}/out; ../../../../bin/touch {0}/out",
    "a path from a variable": 'c=/bin/touch; $c {0}/out; "$c" {0}/out; ${{c}} {0}/out; `echo $c` {0}/out',
    "a path behind a prefix": "A=1 /bin/touch {0}/out; ! /bin/touch {0}/out; time /bin/touch {0}/out",
    "redirections": "echo a > {0}/out; echo a >> {0}/out; echo a &> {0}/out; echo a >| {0}/out; echo a <> {0}/out",
    "more redirections": "> {0}/out; {{ echo a; }} > {0}/out; (echo a) 2>{0}/out; f() {{ echo a; }} > {0}/out; f; for i in 1; do echo a; done >{0}/out; exec 5>{0}/out; echo a >&5; exec {{x}}>{0}/out; : >& {0}/out; echo a 1>{0}/out; [[ a ]] >{0}/out; if :; then echo; fi >{0}/out; coproc echo a >{0}/out",
    "redirections of names": "o={0}/out; echo a > $o; echo a > \"$o\"; eval 'echo a > $o'; eval \"echo a >$o\"; bash -c \"echo a > $o\"; >\"{0}\"/out",
    "hidden redirections": 'x="$(echo a > {0}/out)"; y=`echo a > {0}/out`; cat <<EOF\n$(echo a > {0}/out)\nEOF\necho ${{z:-$(echo a > {0}/out)}} $((1 + $(echo 1 > {0}/out)))',
    "a quote that hides": "echo \"a\\\"\" > {0}/out; echo 'a'\\''b' > {0}/out; echo $'\\'' > {0}/out # '\necho a > {0}/out",
    "functions": "touch() {{ /bin/touch {0}/out; }}; touch; function x {{ command touch {0}/out; }}; x",
    "our own functions": "unset -f __x __ask __command python3 [ cd exec; __x() {{ builtin exec \"$@\"; }}; __ask() {{ __A='/bin/touch {0}/out'; }}; ls; [ -f x ]; exec /bin/touch {0}/out",
    "an alias": "shopt -s expand_aliases; alias ls='/bin/touch {0}/out'\nls\n",
    "command -p": "command -p touch {0}/out; builtin command -p touch {0}/out; command -p -- touch {0}/out",
    "hash": "hash -p /bin/touch t; t {0}/out; BASH_CMDS[u]=/bin/touch; u {0}/out; builtin hash -p /bin/touch v; v {0}/out",
    "enable": "enable -f /usr/lib/bash/mkdir mkdir; builtin enable kill; builtin enable -f {0}/x.so x; enable exec; mkdir {0}/out",
    "exec": "exec touch {0}/out; builtin exec /bin/touch {0}/out; exec -a x /bin/touch {0}/out; command exec touch {0}/out",
    "startup files": "BASH_ENV={0}/x; ENV={0}/x; export BASH_ENV ENV; bash -c :; bash; source {0}/x; . {0}/x; . /etc/profile",
    "PATH": "PATH=/bin:/usr/bin; touch {0}/out; export PATH=/bin; touch {0}/out; PATH=/bin touch {0}/out; declare -g PATH=/bin; unset PATH; touch {0}/out; env PATH=/bin touch {0}/out; declare -g \"PA\"TH=/bin:/usr/bin; touch {0}/out; printf -v PA''TH %s /bin; touch {0}/out; read PAT\\H <<< /bin; touch {0}/out; declare -n p=PATH; p=/bin; touch {0}/out; eval 'PA''TH=/bin'; touch {0}/out",
    "set +r": "set +r; set +o restricted; shopt -u restricted_shell; /bin/touch {0}/out; set -o posix; exec /bin/touch {0}/out",
    "traps": "trap '/bin/touch {0}/out' EXIT DEBUG ERR RETURN INT; builtin trap 'echo a > {0}/out' EXIT; false",
    "prompts": "PROMPT_COMMAND='echo a > {0}/out' PS0='$(/bin/touch {0}/out)' PS4='$(/bin/touch {0}/out)'; set -x; :; set -v; bind -x '\"a\":touch {0}/out'",
    "substitutions": "x=$(/bin/touch {0}/out) y=`/bin/touch {0}/out`; cat <(/bin/touch {0}/out) >(/bin/touch {0}/out); echo a > >(/bin/touch {0}/out); echo a | /bin/touch {0}/out",
    "here-documents": "bash <<EOF\n/bin/touch {0}/out\necho a > {0}/out\nEOF\nbash <<< '/bin/touch {0}/out'; xargs /bin/touch <<< {0}/out; cat <<EOF > {0}/out\na\nEOF\n",
    "arithmetic": "a='b[$(/bin/touch {0}/out)]'; echo $((a)); ((a++)); [[ $a -gt 0 ]]; declare -i n=$a; let \"x=$a\"; echo ${{b[$a]}}; unset \"$a\"; [ -v \"$a\" ]; read \"$a\" <<< 1; printf -v \"$a\" x",
    "indirection": "v='x[$(/bin/touch {0}/out)]'; echo ${{!v}}; declare -n r=$v; r=1; test -v \"$v\"; wait -n -p \"$v\"; echo ${{v@P}}; p='$(/bin/touch {0}/out)'; echo \"${{p@P}}\"",
    "history": "set -o history; history -s touch; history -w {0}/out; history -a {0}/out; fc -s; HISTFILE={0}/out; builtin history -w {0}/out",
    "builtins that act": "ulimit -f unlimited; umask 0; builtin kill -9 -1; kill -9 $PPID; kill -9 0; suspend -f; logout; times; disown -a; compgen -C '/bin/touch {0}/out'; complete -C touch x; mapfile -C '/bin/touch {0}/out' -c 1 A <<< a",
    "connections": 'exec 5<>/dev/tcp/127.0.0.1/{1}; echo a > /dev/tcp/127.0.0.1/{1}; cat < /dev/udp/127.0.0.1/{1}; read x < /dev/tcp/127.0.0.1/{1}; h=/dev/tcp/127.0.0.1/{1}; echo a >$h; eval "exec 3<>$h"; builtin eval "echo a >$h; : <$h"',
    "past the reader": "builtin eval 'echo a > {0}/out; : <> /dev/tcp/127.0.0.1/{1}; /bin/touch {0}/out'; \\eval 'echo a > {0}/out'; 'eval' 'echo a > {0}/out'",
    "jobs": "coproc X {{ /bin/touch {0}/out; }}; set -m; (/bin/touch {0}/out) & disown; sleep 100 &",
    "files": "x=$(<{0}/x); read y < {0}/x; mapfile -t z < {0}/x; exec 7<{0}/x; read -u 7 w; cat {0}/x; cat < {0}/x; echo $x $y $z $w",
    "terminal": "exec 5<>/dev/tty; read x < /dev/tty; echo a > /dev/tty; echo a > /dev/stderr; echo a > /proc/self/fd/1; cd /; echo a > out",
}  # fmt: skip

#: Scripts that ask for much work.
WORK = {
    "braces": "echo {1..999999999}; echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}",
    "braces on long words": "x" * 1000 + "{1..9999}" * 3,
    "patterns": "x=" + "a" * 60_000 + '; p="*a*a*a*a*b"; echo ${x##$p} ${x//$p/c}',
    "a regular expression": "[[ " + "a" * 5_000 + " =~ ^(a+)+(a+)+(a+)+b$ ]]",
    "globs": "shopt -s globstar nullglob; set +f; echo /**/* /*/*/*/*/*/*/*",
    "an endless loop in the background": "(while :; do :; done) & sleep 100",
    "an endless loop": "while :; do :; done",
    "endless output": "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done",
    "endless output in a value": "x=$(while :; do echo aaaaaaaaaaaaaaaaaaaaaaa; done)",
    "endless records": f"while :; do {MAIN} a.b=$((i++)); done",
    "a fork bomb": "f() { f | f & }; f",
    "a fork bomb in a group of its own": "set -m; f() { f | f & }; f",
    "nested substitutions": "f() { x=$(f); }; f",
    "doubling": "x=aaaaaaaa; while :; do x=$x$x; done",
    "a large index": "A[999999999]=1; printf -v x '%*s' 999999999 a; printf '%0999999999d' 1",
    "our descriptors": "while :; do echo junk; done >&3; printf 'command\\x1f1\\0' >&3; read -u 4 x; exec 3>&- 4<&-; ls",
    "junk on our descriptor": "printf '1\\x1fcommand\\0001\\x1f\\000' >&3; printf '%s' '\\x1f\\x1f' >&3; BASH_XTRACEFD=3; set -x; ls",
    "input": "while read x; do :; done; read -t 999999 y; read -N 99999999 z; mapfile B; select i in a b; do :; done",
    "sleep": "read -t 1000000 <> <(:); wait; sleep 100000",
    "a trap that goes on": "trap 'while :; do :; done' EXIT",
    "deep text": "$(" * 100_000,
    "arithmetic that never ends": "echo $((" + "(" * 400_000,
    "many tests": "if ls; then x=1; fi\n" * 500,
    "conditions without an end": "[[ " * 66_000,
    "results without an end": "a=$(b " * 33_000 + "export " * 5,
    "exports": "export " * 28_000,
    "words without an end": "> $" + "a" * 199_000,
}  # fmt: skip


#: A variable of the scripts that this process imports: other tests import at the same time.
SIGN = f"THE_SCRIPTS_OF={os.getpid()}"

#: A secret that lies where scripts may look for it.
SECRET = "what no script may read"


@pytest.fixture
def folder(monkeypatch):
    """A folder that everybody can write to: root's import is not root any more."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o777)
        monkeypatch.chdir(path)
        yield path


@pytest.fixture
def port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        yield server.getsockname()[1]
        with pytest.raises(BlockingIOError):
            server.accept()


def leftovers():
    """The processes that a script left behind."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if SIGN.encode() in (folder / "environ").read_bytes():
                processes.append((folder / "cmdline").read_bytes()[:80])
        except OSError:
            continue
    return processes


def assert_nothing_left():
    """What was killed may need a moment to give its memory back."""
    end = time.monotonic() + 3
    while leftovers():
        assert time.monotonic() < end, leftovers()
        time.sleep(0.05)


def read(script):
    try:
        imported = import_script(script, "run.sh", "0.9", env=dict([SIGN.split("=")]))
    except RewardkitError as error:
        assert len(str(error)) < 600
        assert SECRET not in str(error)
    else:
        assert SECRET not in str(imported)


def attack(name, folder, port):
    (folder / "x").write_text(f"touch out # {SECRET}")
    before = sorted(folder.rglob("*"))
    script = ATTACKS[name].format(folder, port)
    read(f"{script}\n{MAIN} trainer.project_name=b >{folder}/out 2>&1")
    read(f"{MAIN} trainer.project_name=$({script}\n)")
    assert sorted(folder.rglob("*")) == before
    assert_nothing_left()


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_script_changes_and_reads_nothing(name, folder, port):
    attack(name, folder, port)


@pytest.mark.full
@pytest.mark.parametrize("name", ATTACKS)
def test_bash_alone_lets_a_hostile_script_change_and_read_nothing(name, folder, port, monkeypatch):
    child = partial(ChildProcess, "tests.launch.unfenced_child")
    monkeypatch.setattr(script_runs, "ChildProcess", lambda _: child())
    monkeypatch.setattr(script_runs, "IS_FENCED", False)
    attack(name, folder, port)


@pytest.mark.full
@pytest.mark.parametrize("name", WORK)
def test_a_script_that_asks_for_much_work_ends(name, folder):
    begun = time.monotonic()
    read(f"{WORK[name][: MAX_SCRIPT - 100]}\n{MAIN} trainer.project_name=$x")
    assert time.monotonic() - begun < 60
    assert_nothing_left()
    assert not list(folder.iterdir())
