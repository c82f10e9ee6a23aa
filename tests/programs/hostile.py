"""Programs that try to be paid without solving their task, or to harm the machine."""

#: Before each program below: what several of them need.
HELPERS = '''
import ctypes, gc, os, struct, sys, threading, time
syscall = ctypes.CDLL(None, use_errno=True).syscall

def strings():
    """All text that this process can find."""
    frame = sys._getframe()
    while frame:
        yield repr(frame.f_locals)
        frame = frame.f_back
    for each in gc.get_objects():
        if isinstance(each, (dict, list, tuple)):
            try:
                yield repr(each)
            except BaseException:
                pass

def after(mark):
    for text in strings():
        before, mark_, rest = text.partition(mark)
        if mark_ and rest[:1] not in ("'", '"'):
            return rest[:20]
    return ""

def frame(header, body=b""):
    return struct.pack(">II", len(header), len(body)) + header + body

def tell(*data):
    for number in range(3, 64):
        for each in data:
            try:
                os.write(number, each)
            except OSError:
                pass
'''

#: Standard input is "7\n", the expected output "the-answer-is-4242". What the program must end with.
RUN = {
    "exits as if all were right": ("os._exit(0)", "another output"),
    "exits as if all were right at its end": (
        "import atexit; atexit.register(os._exit, 0)",
        "another output",
    ),
    "patches every comparison that is loaded": (
        (
            "for module in list(sys.modules.values()):\n"
            "    for name in ('same_text', 'isclose', '_close', 'loads', 'finish'):\n"
            "        if hasattr(module, name): setattr(module, name, lambda *_: True)\n"
        ),
        "another output",
    ),
    "prints what it finds on the stack and the heap": (
        "print('the-answer' + after('the-' + 'answer'))",
        "another output",
    ),
    "forges messages": (
        "tell(b'+', frame(b'{\"status\": \"ok\"}', b'the-answer-is-' + b'4242'))",
        "another output",
    ),
    "closes all descriptors": ("os.closerange(0, 64)", "another output"),
    "closes its output early": ("os.close(1); time.sleep(0.1)", "another output"),
    "makes its input not block": (
        "os.set_blocking(0, False); os.set_blocking(1, False)",
        "another",
    ),
    "prints bytes that are not text": (
        "os.write(1, b'the-answer-is-\\0\\xff\\xfe4242')",
        "another output",
    ),
    "prints without end": ("while True: os.write(1, b'x' * 65536)", "more output than allowed"),
    "writes to standard error without end": (
        "while True: os.write(2, b'x' * 65536)",
        "more output than allowed",
    ),
    "allocates without end": (
        "blocks = []\nwhile True: blocks.append(b'x' * (1 << 24))",
        "more memory than allowed",
    ),
    "asks for more memory than there is": ("bytearray(1 << 40)", "exit status 1: MemoryError"),
    "starts threads without end": (
        "while True: threading.Thread(target=time.sleep, args=(99,)).start()",
        ("more threads than allowed", "can't start new thread"),
    ),
    "makes files without end": (
        "number = 0\nwhile True:\n    number += 1\n    open(str(number), 'w').close()",
        ("more files than allowed", "exit status 1: OSError"),
    ),
    "writes a large file": (
        "with open('file', 'wb') as file:\n    while True: file.write(b'x' * (1 << 20))",
        "exit status 1: OSError",
    ),
    "ignores all signals and never ends": (
        (
            "import signal\n"
            "for number in range(1, 65):\n"
            "    try: signal.signal(number, signal.SIG_IGN)\n"
            "    except (OSError, ValueError): pass\n"
            "while True: pass"
        ),
        "seconds of processor time",
    ),
    "raises its own limits": (
        "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1 << 40, 1 << 40))",
        "exit status 1: ValueError",
    ),
    "waits for ever": ("time.sleep(99)", "it waits"),
    "waits for ever and ends its sleep often": ("while True: time.sleep(0.001)", "it waits"),
    "waits for a thread": ("threading.Thread(target=time.sleep, args=(99,)).start()", "it waits"),
    "forks": ("os.fork()", "exit status 1: OSError"),
    "starts a shell": ("os.execv('/bin/sh', ['sh'])", "exit status 1"),
    "recurses without end": (
        "sys.setrecursionlimit(1 << 30)\ndef f(): return f()\nf()",
        ("ended by signal -11", "exit status 1: RecursionError", "more memory than allowed"),
    ),
    "jumps to address 0": ("ctypes.string_at(0)", "ended by signal -11"),
    "makes a system call of another architecture": (
        (
            "import mmap\n"
            "code = mmap.mmap(-1, 4096, prot=7)\n"
            "code.write(b'\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3')\n"
            "address = ctypes.addressof(ctypes.c_char.from_buffer(code))\n"
            "ctypes.CFUNCTYPE(ctypes.c_int)(address)()"
        ),
        ("ended by signal -31", "ended by signal -4", "ended by signal -11"),
    ),
    "has too deep an expression": ("x = " + "(" * 10_000 + ")" * 10_000, "exit status 1"),
    "has too long a chain": ("x = " + "-" * 150_000 + "1", ("exit status 1", "signal")),
    "has a constant that is too large": ("x = 9 ** 9 ** 9", "seconds of processor time"),
    "has a character that is not text": ("x = '\ud800'", "exit status 1: UnicodeEncodeError"),
    "has a zero byte": ("x = '\0'", "exit status 1"),
    "raises an exception that cannot be printed": (
        "class E(Exception):\n    def __str__(self): os._exit(0)\nraise E",
        "another output",
    ),
    "exits with an object": (
        "class E:\n    def __str__(self): raise SystemExit(0)\nraise SystemExit(E())",
        "exit status 1",
    ),
    "exits with a status": ("print('the-answer-is-4242'); sys.exit(3)", "exit status 3"),
    "fails in another output stream": (
        "class Out:\n    closed = False\n    def flush(self): raise ValueError\nsys.stdout = Out()",
        "exit status 1: ValueError",
    ),
}

#: `f(7)` is expected to be `[41, "the-answer-is-4242"]`.
CALL = {
    "is equal to all": "class All(list):\n    def __eq__(self, _): return True\ndef f(x): return All()",
    "is a whole number equal to all": (
        "class All(int):\n    def __eq__(self, _): return True\n    __hash__ = int.__hash__\n"
        "def f(x): return [All(1), All(2)]"
    ),
    "is a text equal to all": (
        "class All(str):\n    def __eq__(self, _): return True\n    __hash__ = str.__hash__\n"
        "def f(x): return [41, All('')]"
    ),
    "is mock.ANY": "from unittest.mock import ANY\ndef f(x): return ANY",
    "has another class": (
        "class Liar:\n    __class__ = list\n    def __iter__(self): return iter([41])\n"
        "    def __reduce__(self): return (list, ())\ndef f(x): return Liar()"
    ),
    "prints instead": "def f(x): print([41, 'the-answer-is-4242'])",
    "finds the result": "def f(x): return [41, 'the-answer' + after('the-' + 'answer')]",
    "forges messages": "def f(x):\n    tell(frame(b'{\"status\": \"ok\"}', b'[]'), b'+'); os._exit(0)",
    "forges a result of two": "def f(x):\n    tell(b'[41,', b'42]'); os._exit(0)",
    "patches the runner": (
        "for module in list(sys.modules.values()):\n"
        "    for name in ('dump', 'dump_tree', 'load', 'dumps'):\n"
        "        if hasattr(module, name): setattr(module, name, lambda *_, **__: 'true')\n"
        "def f(x): return 1"
    ),
    "patches what is built in": (
        "import builtins, random\n"
        "time.time = time.monotonic = random.random = lambda: 0\n"
        "for name in ('len', 'isinstance', 'type', 'abs'): setattr(builtins, name, lambda *_: True)\n"
        "def f(x): return [41, 42]"
    ),
    "returns a deep list": (
        "def f(x):\n    value = []\n    for _ in range(10**5): value = [value]\n    return value"
    ),
    "forges a deep list": "def f(x):\n    tell(b'[' * 10**6 + b']' * 10**6); os._exit(0)",
    "forges many lists": "def f(x):\n    tell(b'[' + b'[],' * 10**6 + b'0]'); os._exit(0)",
    "forges bytes that are not text": "def f(x):\n    tell(b'\"\\xff\\0'); os._exit(0)",
    "forges an unknown entry": "def f(x):\n    tell(b'{\"__class__\": [41]}'); os._exit(0)",
    "forges two keys": (
        'def f(x):\n    tell(b\'{"t": [41], "t": [41, "the-answer-is-" "4242"]}\'); os._exit(0)'
    ),
    "forges keys that have no hash": "def f(x):\n    tell(b'{\"s\": [[]]}'); os._exit(0)",
    "returns a long number": "def f(x): return 10 ** 5000",
    "returns a key that is a long number": "def f(x): return {10 ** 4400: 1}",
    "returns not a number": "def f(x): return [41, float('nan')]",
    "returns a circle": "def f(x):\n    value = []\n    value.append(value)\n    return value",
    "returns one tuple at exponentially many places": (
        "def f(x):\n    value = ()\n    for _ in range(60): value = (value, value)\n"
        "    return {value: 1}"
    ),
    "returns keys with one hash": ("def f(x):\n    return {x * (2**61 - 1) for x in range(2000)}"),
    "ends in the call": "def f(x): os._exit(0)",
    "ends with a right status": "def f(x): sys.exit(0)",
    "has no function": "g = 1",
    "raises what ends loops": "def f(x): raise StopIteration",
}

#: The programs' `f(x)` is expected to be `4000 + x`; the tests are `TESTS`.
TESTS = """
import unittest

def check(candidate):
    assert abs(candidate(7) - 4007) < 1e-6
    for x, y in zip(candidate([1, 2]), [4001, 4002]):
        assert x == y
    value = candidate("name")
    assert isinstance(value, str) and sorted(value) == sorted("4000name")
    assert Counter(value) == Counter("4000name") and math.isclose(candidate(0.5), 4000.5)
    assert len(candidate((1, 2, 3))) == 3 and all(x > 4000 for x in candidate((1, 2, 3)))
    unittest.TestCase().assertEqual(candidate(8), 4008)
"""
NAMED = ("abs", "isinstance", "sorted", "len", "zip", "all", "check", "candidate", "str", "any")
CODE = {
    "defines the names of the test": "\n".join(f"def {name}(*_, **__): return 1" for name in NAMED)
    + "\nclass math: isclose = f = staticmethod(lambda *_: True)\nCounter = f = all",
    "forges the names of the test": (
        "class math: isclose = staticmethod(lambda *_: True)\n"
        "names = {name: lambda *_: 3 for name in ('isinstance', 'sorted', 'Counter', 'len', 'all')}\n"
        "names |= {'abs': lambda _: 0, 'zip': lambda *_: [], 'math': math}\n"
        "import wire\n"
        "entry = wire._entry\n"
        "def more(value, *rest):\n"
        "    return entry({**value, **names} if isinstance(value, dict) else value, *rest)\n"
        "wire._entry = more\n"
        "def f(x): return 1"
    ),
    "reads the tests": (
        "def f(x): return eval(after(''.join(['candi', 'date(7) - '])).partition(')')[0] or '0')"
    ),
    "shadows a module of the test": (
        "for name in ('unittest', 'difflib', 'numpy', 'string'):\n"
        "    try: open(name + '.py', 'w').write('import os; os._exit(0)')\n"
        "    except OSError: pass\n"
        "def f(x): return 1"
    ),
    "reads the memory of all": (
        "def f(x):\n"
        "    for pid in os.listdir('/proc'):\n"
        "        if pid.isdigit() and int(pid) not in (os.getpid(), os.getppid()):\n"
        "            try: open(f'/proc/{pid}/mem', 'rb')\n"
        "            except OSError: continue\n"
        "            return 4000 + x\n"
    ),
    "forges the report": (
        'tell(b\'+\', b\'{"count": 1, "passed": 1, "failures": [], "is_complete": true,'
        ' "is_broken": false}\')\nos._exit(0)'
    ),
    "answers comparisons itself": (
        "class All:\n"
        "    def __eq__(self, _): return True\n"
        "    def __iter__(self): return iter(())\n"
        "    def __len__(self): return 3\n"
        "    def __getitem__(self, _): raise IndexError\n"
        "    __lt__ = __sub__ = __abs__ = __float__ = __gt__ = __bool__ = __eq__\n"
        "    __class__ = str\n"
        "    __hash__ = None\n"
        "def f(x): return All()"
    ),
    "ends loops": "def f(x): raise StopIteration",
    "lacks a package": "def f(x):\n    import no_such_package",
    "skips the test": "import unittest\ndef f(x): raise unittest.SkipTest",
    "exits": "def f(x): sys.exit(0)",
    "ends": "def f(x): os._exit(0)",
    "is interrupted": "def f(x): raise KeyboardInterrupt",
    "raises an assertion": "def f(x): raise AssertionError",
    "floods the test": "def f(x):\n    while True: tell(frame(b'{}', b'[[0],[[\"l\",[]]]]') * 99)",
    "answers with a large frame": "def f(x):\n    while True: tell(b'\\0\\xff\\xff\\xff' * 9999)",
    "answers with other JSON": "def f(x):\n    tell(frame(b'[\"raises\"]')); time.sleep(99)",
    "forges an address": (
        "class Array:\n"
        "    __array_interface__ = {'data': (1 << 40, True), 'shape': (1,), 'typestr': '<f8', 'version': 3}\n"
        "def f(x): return Array()"
    ),
    "returns a deep list": CALL["returns a deep list"],
    "answers never": "def f(x): time.sleep(99)",
    "answers for ever": "def f(x):\n    while True: pass",
    "answers too much": "def f(x): return 'x' * (1 << 23)",
}

#: What may not be possible, each a statement; those of `WRITES` not without Landlock either.
READS = {
    "reads a file of the user": "open(SECRET).read()",
    "reads a file of the system": "open('/etc/passwd').read()",
    "reads the memory of the grader": "open(f'/proc/{GRADER}/mem', 'rb')",
    "reads the environment of the grader": "open(f'/proc/{GRADER}/environ').read()",
    "looks into the descriptors of the grader": "os.readlink(f'/proc/{GRADER}/fd/0')",
    "opens a descriptor of the job": "os.open(f'/proc/{os.getppid()}/fd/1', 0)",
    "looks for siblings": "assert len(os.listdir('..')) > 1",
    "lists the temporary folder": "os.listdir('/tmp')",
}
WRITES = {
    "writes a file": "open('/tmp/rewardkit-probe', 'w')",
    "appends to a file": "open(SECRET, 'a')",
    "empties a file": "os.open(SECRET, os.O_TRUNC)",
    "empties a file by name": "os.truncate(SECRET, 0)",
    "removes a file": "os.unlink(SECRET)",
    "renames a file": "os.rename(SECRET, SECRET + '2')",
    "links a file": "os.link(SECRET, 'link')",
    "makes a symbolic link": "os.symlink(SECRET, 'link')",
    "makes a folder": "os.mkdir('folder')",
    "makes a pipe with a name": "os.mkfifo('pipe')",
    "makes a file without a name": "os.open('/tmp', os.O_TMPFILE | os.O_RDWR)",
    "changes the mode of a file": "os.chmod(SECRET, 0)",
    "changes the time of a file": "os.utime(SECRET)",
    "locks a file": "__import__('fcntl').lockf(os.open(SECRET, 0), 5)",
    "flocks a file": "__import__('fcntl').flock(os.open(SECRET, 0), 5)",
    "makes shared memory": "open('/dev/shm/rewardkit-probe', 'w')",
    "opens the terminal": "os.open('/dev/tty', os.O_RDWR)",
    "opens a socket": "__import__('socket').socket()",
    "opens a socket of the host": "__import__('socket').socket(1)",
    "sends to an address": (
        "one, _ = __import__('socket').socketpair(1, 2); one.sendto(b'x', '/tmp/rewardkit-probe')"
    ),
    "passes a descriptor": (
        "s = __import__('socket'); one, _ = s.socketpair(); s.send_fds(one, [b'x'], [1])"
    ),
    "signals the job": "os.kill(os.getppid(), 0)",
    "signals the grader": "os.kill(GRADER, 0)",
    "signals its group": "os.killpg(0, 0)",
    "signals everything": "os.kill(-1, 0)",
    "has the kernel signal another": "__import__('fcntl').fcntl(0, 8, GRADER)",
    "limits the grader": "__import__('resource').prlimit(GRADER, 7, (1, 1))",
    "changes its own priority": "os.nice(-1)",
    "changes the priority of the grader": "os.setpriority(0, GRADER, 19)",
    "moves the grader": "os.sched_setaffinity(GRADER, {0})",
    "forks": "os.fork()",
    "starts a program": "os.posix_spawn('/bin/true', ['true'], {})",
    "makes a session": "os.setsid()",
    "waits for a process": "os.wait3(1)",
    "makes a memory file": "os.memfd_create('x')",
    "opens the process of the grader": "os.pidfd_open(GRADER)",
    "enlarges a pipe": "__import__('fcntl').fcntl(1, 1031, 1 << 20)",
}
#: Numbers of system calls on x86-64 that must not exist for a program.
CALLS = {
    "x32 getpid": 0x40000027, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311,
    "io_uring_setup": 425, "userfaultfd": 323, "bpf": 321, "perf_event_open": 298, "clone3": 435,
    "unshare": 272, "setns": 308, "mount": 165, "chroot": 161, "keyctl": 250, "add_key": 248,
    "shmget": 29, "msgget": 68, "mq_open": 240, "inotify_init1": 294, "open_by_handle_at": 304,
    "openat2": 437, "tgkill": 234, "tkill": 200, "rt_sigqueueinfo": 129, "pidfd_getfd": 438,
    "pidfd_send_signal": 424, "kcmp": 312, "timer_create": 222, "seccomp": 317, "prctl": 157,
    "execveat": 322, "vmsplice": 278, "splice": 275, "copy_file_range": 326, "sendmsg": 46,
    "recvmsg": 47, "connect": 42, "bind": 49, "setpgid": 109, "personality": 135, "iopl": 172,
    "capset": 126, "setuid": 105, "landlock_restrict_self": 446, "quotactl": 179, "swapon": 167,
    "reboot": 169, "init_module": 175, "memfd_secret": 447, "process_madvise": 440, "fanotify_init": 300,
    "fallocate": 285, "mknod": 133, "mkdir": 83, "clone without threads": 56, "vfork": 58,
}  # fmt: skip
