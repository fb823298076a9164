"""Start of a program of gradform, and its exit when it is stopped.

The commands import SymPy and torch, which takes seconds. This module needs neither, so that Ctrl-C
is answered from the first moment on: with one line, the usual status, and no traceback.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module

from derive.running.garbage import collect_seldom

DONE = 0  # the exit status
BY_SIGNAL = 128  # added by shells to the signal that ended a program
WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "terminated"}
STOPPING = {getattr(signal, name): said for name, said in WORDS.items() if hasattr(signal, name)}


class Stopped(KeyboardInterrupt):
    """Raised when the program is asked to end: by Ctrl-C, or by the system's signal."""

    def __init__(self, number: int):
        self.words, self.status = STOPPING[number], BY_SIGNAL + number
        super().__init__(self.words)


def run(module: str, command: str) -> None:
    """Import the module of a command, call it and leave with its exit status; does not return.

    A first Ctrl-C raises `Stopped` in the command, so that it can clean up; a second one, or one
    during imports, ends the program at once.
    """
    _answer(_leave_at_once)
    _backslashes()
    collect_seldom()
    function = getattr(import_module(module), command)
    sys.unraisablehook = _unraisable
    _answer(_raise)
    try:
        status = function()
    except SystemExit as end:  # of the parser of arguments
        status = end.code
    except BrokenPipeError:  # of the parser's help, where output is not buffered
        status = DONE
    except Stopped as stop:  # not handled by the command itself
        _leave_at_once(stop.status - BY_SIGNAL)
    if not flushed():
        status = DONE
    if isinstance(status, int) and status > BY_SIGNAL:
        os._exit(status)  # stopped: Python's own shutdown could be interrupted again
    sys.exit(status)


def flushed() -> bool:
    """Flush standard output; return whether it is still being read."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
        return True
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False


def _answer(handler) -> None:
    """Install a handler of the stopping signals, except those ignored at the start (nohup)."""
    for number in STOPPING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _raise(number: int, frame) -> None:
    _answer(_leave_at_once)
    raise Stopped(number)


def _leave_at_once(number: int, frame=None) -> None:
    """Exit without unwinding, because imports cannot be unwound and a second Ctrl-C should not
    wait. The next run removes temporary files.
    """
    os.write(2, f"{STOPPING[number]}\n".encode())
    os._exit(BY_SIGNAL + number)


def _unraisable(what) -> None:
    """Handle an interrupt where Python cannot raise it, and would go on after a traceback."""
    if isinstance(what.exc_value, Stopped):
        _leave_at_once(what.exc_value.status - BY_SIGNAL)
    sys.__unraisablehook__(what)


def _backslashes() -> None:
    """Print letters that a stream cannot encode as backslash escapes."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
