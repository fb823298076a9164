"""Processes of Python that have torch and SymPy imported: `run` and `Popen` as in `subprocess`.

A server imports the libraries once, and forks a process for each call, which imports gradform
itself. It saves the three seconds of a start wherever start-up is not what is tested; there, and
where a variable is read by the interpreter or by torch's import, start Python.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from types import ModuleType

LIBRARIES = ("torch", "torch.distributed", "sympy")
MOST = 2**20  # bytes of a request
PIPE = subprocess.PIPE


@cache
def _server() -> socket.socket:
    """The connection to the server, which ends with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    plain = {n: v for n, v in os.environ.items() if n not in ("PYTHONPATH", "PYTHONSTARTUP")}
    process = subprocess.Popen(
        [sys.executable, __file__, str(theirs.fileno())],
        env=plain,
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
    )
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


class Popen(subprocess.Popen):
    """A process of ``[sys.executable, ...]``, forked from the server."""

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *rest):
        """Long: the arguments are those that `subprocess.Popen` passes, by position."""
        pipes, start_new_session = rest[3:9], rest[14]
        read, _, _, write, _, error_write = pipes
        program, *arguments = map(os.fspath, args)
        assert program == sys.executable, program
        request = {
            "arguments": arguments,
            "cwd": os.fspath(cwd or os.getcwd()),
            "env": {**(os.environ if env is None else env)},
            "session": bool(start_new_session),
        }
        self._status, status = os.pipe()
        streams = [n if e == -1 else e for n, e in enumerate((read, write, error_write))]
        data = json.dumps(request).encode()
        socket.send_fds(_server(), [data], [*streams, status])
        os.close(status)
        self.pid = int(os.read(self._status, 16))
        self._child_created = True
        self._close_pipe_fds(*pipes)

    def _try_wait(self, wait_flags):
        if wait_flags == os.WNOHANG and not select.select([self._status], [], [], 0)[0]:
            return 0, 0
        said = os.read(self._status, 16)
        os.close(self._status)
        return self.pid, int(said or -signal.SIGKILL)

    def _internal_poll(self, _deadstate=None, **_):
        if self.returncode is None and (found := self._try_wait(os.WNOHANG))[0]:
            self._handle_exitstatus(found[1])
        return self.returncode


def run(args, *, input=None, capture_output=False, timeout=None, check=False, **how):
    """As `subprocess.run`."""
    if capture_output:
        how |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        how["stdin"] = subprocess.PIPE
    with Popen(args, **how) as process:
        try:
            out, said = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(args, process.returncode, out, said)
    if check:
        done.check_returncode()
    return done


# -- the server ------------------------------------------------------------------------


def _requests(connection: socket.socket) -> dict:
    """Fork a process for each request; returns in that process, with the request."""
    waiting: dict[int, int] = {}
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([connection, woken], [], [])
        if woken in ready:
            os.read(woken, 2**10)
            _tell_of_the_ended(waiting)
        if connection in ready:
            data, handles, *_ = socket.recv_fds(connection, MOST, 4)
            if not data:
                raise SystemExit
            pid = os.fork()
            if not pid:
                request = json.loads(data)
                if request["session"]:  # before its number is told
                    os.setsid()
                os.write(handles[3], f"{os.getpid():16}".encode())
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for i, handle in enumerate(handles):
                    os.dup2(handle, i) if i < 3 else None
                for handle in {*handles, woken, wake, connection.detach(), *waiting.values()}:
                    os.close(handle)
                return request
            *streams, waiting[pid] = handles
            for handle in streams:
                os.close(handle)


def _tell_of_the_ended(waiting: dict[int, int]) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            handle = waiting.pop(ended[0])
            with suppress(BrokenPipeError):
                os.write(handle, f"{ended[1]:16}".encode())
            os.close(handle)


def _run(request: dict) -> None:
    """As ``python`` does with these arguments: ``-c``, ``-m`` or a file, after ``-P``."""
    sys.stdin = sys.__stdin__ = os.fdopen(0, closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", closefd=False)
    errors = {"errors": "backslashreplace", "buffering": 1}
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", closefd=False, **errors)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    arguments, first = request["arguments"], [""]
    while arguments[0] in ("-P", "-B"):
        first = [] if arguments.pop(0) == "-P" else first
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    how, *rest = arguments
    base = [path for path in sys.path if path != os.path.dirname(__file__)]
    if how == "-c":
        sys.path[:], sys.argv[:] = [*first, *paths, *base], ["-c", *rest[1:]]
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), vars(main))
    elif how == "-m":
        sys.path[:] = [*(os.getcwd() for _ in first), *paths, *base]
        sys.argv[:] = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[:] = [*(os.path.dirname(os.path.abspath(how)) for _ in first), *paths, *base]
        sys.argv[:] = arguments
        runpy.run_path(how, run_name="__main__")


if __name__ == "__main__":
    for library in LIBRARIES:
        import_module(library)
    gc.freeze()  # nobody searches it for garbage, and it stays shared
    _run(_requests(socket.socket(fileno=int(sys.argv[1]))))
