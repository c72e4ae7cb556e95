"""The start of every command: a SIGINT ends it with 130 and one line at any time, also while it is being loaded.

Nothing is imported before the handler stands; what a command imports can take longer than a second on a busy machine.
"""

import os
import signal
import sys
from types import FrameType


def _exit_interrupted(*_: object) -> None:
    """End at once: there is nothing yet to give back, or nothing any more."""
    os.write(2, b"interrupted: run the same command again to go on\n")
    os._exit(130)


def _raise_keyboard_interrupt(_: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not where a module is being imported: some extensions crash of it (orjson does)."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            from threading import Timer

            Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()  # again, when it may have been imported
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _open_closed_streams() -> None:
    """Put the null device where a standard stream is closed: the next file of a table would take its number.

    What is written to a stream by its number, as libraries and children do, would go into that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # which takes the lowest number that is free


def main() -> int:
    """Run the command that the process was started with; return its exit code."""
    _open_closed_streams()
    heeding = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # in the background of a shell it is not
    if heeding:
        signal.signal(signal.SIGINT, _exit_interrupted)
    from nutch2py.support.process_memory import reduce_gc_frequency

    reduce_gc_frequency()  # before all that is to be loaded
    from nutch2py.cli import main as run

    try:
        if heeding:
            signal.signal(signal.SIGINT, _raise_keyboard_interrupt)
        code = run()
        sys.stdout.flush()
    except KeyboardInterrupt:  # a second one, or one in the moment that the command ended
        _exit_interrupted()
    except BrokenPipeError:  # the reader of our output is gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    if heeding:
        signal.signal(signal.SIGINT, _exit_interrupted)
    return code


if __name__ == "__main__":
    sys.exit(main())
