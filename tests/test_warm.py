"""A process that was forked warm does what one of Python's own does."""

import os
import subprocess
import sys

import pytest
import warm

PROGRAMS = {
    "arguments and a status": "import sys; print(sys.argv, sys.path[0]); sys.exit(3)",
    "a message": "import sys; sys.exit('wrong')",
    "an error": "print(1); raise ValueError",
    "a signal": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "Ctrl-C": "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "input, folder and variables": "import os; print(input(), os.getcwd(), sorted(os.environ))",
    "the end of a program": "import atexit; atexit.register(print, 2); print(1)",
    "a child": "import os; os.fork() or os._exit(4); print(os.wait()[1] >> 8)",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_it_runs_as_python_does(program, tmp_path):
    how = {"cwd": tmp_path, "env": {"LC_ALL": "C.UTF-8", "A": "1"}, "input": "said\n"}
    command = [sys.executable, "-c", program, "one"]
    ours, theirs = (
        of.run(command, capture_output=True, text=True, **how) for of in (warm, subprocess)
    )
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout)
    assert ours.stderr.splitlines()[-1:] == theirs.stderr.splitlines()[-1:]


def test_a_module_and_a_file_find_their_neighbours(tmp_path):
    (tmp_path / "beside.py").write_text("NAME = 'beside'\n")
    (tmp_path / "main.py").write_text("import beside\nprint(beside.NAME, __name__)\n")
    for arguments in (["-m", "main"], ["main.py"], [str(tmp_path / "main.py")]):
        done = warm.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout == "beside __main__\n", done.stderr


def test_it_has_imported_the_libraries_and_nothing_of_ours():
    ours = "{'derive', 'codegen', 'gradform', 'generated'}"
    program = f"import sys; print('torch' in sys.modules, *({ours} & sys.modules.keys()))"
    done = warm.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


def test_a_wait_may_time_out_and_it_is_killed():
    program = "import time; time.sleep(60)"
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run([sys.executable, "-c", program], timeout=0.2)
    process = warm.Popen([sys.executable, "-c", program], start_new_session=True)
    assert process.poll() is None and os.getsid(process.pid) == process.pid
    process.kill()
    assert process.wait() == -9
