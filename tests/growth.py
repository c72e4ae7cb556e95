"""Does the work of a function grow faster than its input? Answered by ratios of CPU time, never by a time.

``assert_linear(function, shapes)`` runs a function on inputs of n, 2n and 4n characters. Linear work takes four times
as long for 4n as for n, quadratic work sixteen times; the bound lies between. It must grow so at both steps, since a
library may take another way at some length (``str.find`` does at 30,000). A machine that is busy with other things
makes single runs slow, never fast: the fastest of several counts, and one attempt below the bound is enough.

Shapes are functions from a length to an input, as ``repeated("a/", head="http://h/")`` makes them: repeated and
alternated characters, openings that are never closed, near misses. Several are measured as one (a shape that grows with
the square outweighs the others at these lengths); when such a group fails, the shape that is to blame is looked for.

What remembers results measures nothing: give the function behind the memory.
"""

from __future__ import annotations

import gc
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

Shape = Callable[[int], Any]
"""From a length to an input of about that length."""

_ATTEMPTS = 5
_LEAST_SECONDS = 0.005
_BOUND, _STEP_BOUND = 8.0, 2.4  # 4n against n: 4 is linear, 16 is quadratic; and each doubling
_GROUP = 24  # shapes that are measured as one
_STEP, _LEAP, _VISIBLE_SECONDS = 1.5, 16.0, 0.003  # on the way up to n, for what doubles with each character


def repeated(piece: str, head: str = "", tail: str = "") -> Shape:
    """Return the shape ``head``, ``piece`` over and over, ``tail``."""
    return lambda length: head + piece * max((length - len(head) - len(tail)) // len(piece), 1) + tail


def repetitions(pieces: list[str], heads: list[str], tails: list[str]) -> dict[str, Shape]:
    """Return the shapes of each piece with each head and tail, by a name that tells them."""
    return {
        f"{head!r} + {piece!r} * n + {tail!r}": repeated(piece, head, tail)
        for piece in pieces
        for head in heads
        for tail in tails
    }


def assert_linear(function: Callable[[Any], object], shapes: Mapping[str, Shape], longest: int = 32_768) -> None:
    """Fail when the work for inputs of ``longest`` / 4, / 2 and / 1 characters grows faster than the inputs.

    ValueError is an answer; any other exception goes through.
    """
    names = list(shapes)
    for start in range(0, len(names), _GROUP):
        group = names[start : start + _GROUP]
        for name in group:
            _climb(function, name, shapes[name], longest // 4)
        if _grows(function, [shapes[name] for name in group], longest):
            slow = [name for name in group if _grows(function, [shapes[name]], longest)]
            raise AssertionError(f"grows faster than its input: {', '.join(slow or group)}")


def _climb(function: Callable[[Any], object], name: str, shape: Shape, size: int) -> None:
    """Fail at a short input when the work leaps: at a long one it would never end."""
    length, before = 6.0, 0.0
    while length < size:
        value = shape(int(length))
        taken = _seconds(function, [value], 1)
        if taken > _VISIBLE_SECONDS and taken > _LEAP * before:
            taken = min(taken, _seconds(function, [value], 1), _seconds(function, [value], 1))
            if taken > _VISIBLE_SECONDS and taken > _LEAP * before and before > 0:
                raise AssertionError(f"leaps at {int(length)} characters: {name}")
        length, before = length * _STEP, max(taken, 1e-6)


def _grows(function: Callable[[Any], object], shapes: list[Shape], longest: int) -> bool:
    sizes = (longest // 4, longest // 2, longest)
    inputs = [[shape(size) for shape in shapes] for size in sizes]
    once = _seconds(function, inputs[0], 1)
    times = max(1, round(_LEAST_SECONDS / max(once, 1e-7)))
    fastest = [float("inf")] * len(sizes)
    for _ in range(_ATTEMPTS):
        for index, values in enumerate(inputs):
            fastest[index] = min(fastest[index], _seconds(function, values, times))
        least, double, most = fastest
        if most <= _BOUND * least or double <= _STEP_BOUND * least or most <= _STEP_BOUND * double:
            return False
    return True


def _seconds(function: Callable[[Any], object], values: list[Any], times: int) -> float:
    """Return the CPU time of this thread for all values, ``times`` over."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        start = time.thread_time()
        for _ in range(times):
            for value in values:
                try:
                    function(value)
                except ValueError:
                    continue
        return time.thread_time() - start
    finally:
        if enabled:
            gc.enable()


def patterns_of(package: ModuleType) -> dict[str, re.Pattern[str]]:
    """Return the compiled patterns that stand in the modules of a package, as ``module:name``."""
    return {
        f"{module.__name__.removeprefix(package.__name__ + '.')}:{name}": value
        for module in _modules(package)
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern)
    }


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)
