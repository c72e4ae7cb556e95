"""Entry point of every command: SIGINT ends it with exit code 130 and one line at any time, even while it is loading.

Nothing is imported before the signal handler is set: imports of a command can take over a second on a busy machine.
"""

import os
import signal
import sys
from types import FrameType


def _exit_interrupted(*_: object) -> None:
    """Exit at once, when nothing is open yet, or nothing any more."""
    os.write(2, b"interrupted: run the same command again to continue\n")
    os._exit(130)


def _raise_keyboard_interrupt(_: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not during an import: some extension modules crash on it (orjson does)."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            from threading import Timer

            Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()  # again, after the import
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _open_closed_streams() -> None:
    """Open the null device for each closed standard stream; otherwise the next file of a table would get its number.

    Output of libraries and child processes to that stream would then go into the file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # gets the lowest free number


def main() -> int:
    """Run the command of this process and return its exit code."""
    _open_closed_streams()
    handles_sigint = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not as a shell's background job
    if handles_sigint:
        signal.signal(signal.SIGINT, _exit_interrupted)
    from nutch2py.support.process_memory import reduce_gc_frequency

    reduce_gc_frequency()  # before the other imports
    from nutch2py.cli import main as run

    try:
        if handles_sigint:
            signal.signal(signal.SIGINT, _raise_keyboard_interrupt)
        code = run()
        sys.stdout.flush()
    except KeyboardInterrupt:  # a second one, or one just as the command finished
        _exit_interrupted()
    except BrokenPipeError:  # the reader of our output has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    if handles_sigint:
        signal.signal(signal.SIGINT, _exit_interrupted)
    return code


if __name__ == "__main__":
    sys.exit(main())
