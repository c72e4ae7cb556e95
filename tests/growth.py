"""Does the work of a function grow faster than its input? Answered by ratios of CPU time, never by a time.

``assert_linear(function, shapes)`` runs a function on inputs of n, 2n and 4n characters. Linear work takes four times
as long for 4n as for n, quadratic work sixteen times; the bound lies between. It must grow so at both steps, and again
at 2n to 8n: a library may take another way at some length (``str.find`` does at 30,000), and requesting memory from
the system at each call costs more from some size on. A machine that is busy with other things makes single
runs slow, never fast: the fastest of several counts, and one attempt that is clearly linear is enough.

Shapes are functions from a length to an input, as ``repeated("a/", head="http://h/")`` makes them: repeated and
alternated characters, openings that are never closed, near misses. Several are measured as one (a shape that grows with
the square outweighs the others at these lengths); when such a group fails, the shape that is to blame is looked for.

A cached function measures nothing: pass the function below the cache.
"""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import pkgutil
import re
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import ModuleType
from typing import Any

_re_parser: Any = importlib.import_module("re._parser")

Shape = Callable[[int], Any]
"""From a length to an input of about that length."""

_ATTEMPTS = 5
_LEAST_SECONDS = 0.005
_CLEAR, _BOUND, _STEP_BOUND = 5.5, 8.0, 2.4  # 4n against n: 4 is linear, 16 is quadratic; and each doubling
_GROUP = 24  # shapes that are measured as one
_STEP, _LEAP, _VISIBLE_SECONDS = 1.5, 16.0, 0.003  # on the way up to n, for what doubles with each character


def repeated(piece: str, head: str = "", tail: str = "") -> Shape:
    """Return the shape ``head``, ``piece`` over and over, ``tail``."""
    return lambda length: head + piece * max((length - len(head) - len(tail)) // len(piece), 1) + tail


def repetitions(pieces: list[str], heads: list[str], tails: list[str]) -> dict[str, Shape]:
    """Return the shapes of each piece with each head and tail, by a name that describes them."""
    return {
        f"{head!r} + {piece!r} * n + {tail!r}": repeated(piece, head, tail)
        for piece in pieces
        for head in heads
        for tail in tails
    }


def assert_linear(
    function: Callable[[Any], object],
    shapes: Mapping[str, Shape],
    longest: int = 32_768,
    *,
    of_process: bool = False,
) -> None:
    """Fail when the work for inputs of ``longest`` / 4, / 2 and / 1 characters grows faster than the inputs.

    ValueError is an answer; any other exception goes through. ``of_process``: the work of all threads counts, and
    that of native code in them, for inputs that are too long for a leap on the way up to them.
    """
    names = list(shapes)
    clock = time.process_time if of_process else time.thread_time
    for start in range(0, len(names), _GROUP):
        group = names[start : start + _GROUP]
        for name in group if not of_process else ():
            _climb(function, name, shapes[name], longest // 4)
        if _grows(function, [shapes[name] for name in group], longest, clock):
            slow = [
                name
                for name in group
                if _grows(function, [shapes[name]], longest, clock)
                and _grows(function, [shapes[name]], 2 * longest, clock)
            ]
            if slow:  # else no single one: the machine is busy, since linear functions are linear in sum
                raise AssertionError(f"grows faster than its input: {', '.join(slow)}")


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


def _grows(function: Callable[[Any], object], shapes: list[Shape], longest: int, clock: Callable[[], float]) -> bool:
    sizes = (longest // 4, longest // 2, longest)
    inputs = [[shape(size) for shape in shapes] for size in sizes]
    once = _seconds(function, inputs[0], 1, clock)
    times = max(1, round(_LEAST_SECONDS / max(once, 1e-7)))
    fastest = [float("inf")] * len(sizes)
    for _ in range(_ATTEMPTS):
        for index, values in enumerate(inputs):
            fastest[index] = min(fastest[index], _seconds(function, values, times, clock))
        least, double, most = fastest
        if most <= _CLEAR * least:
            return False
    return most > _BOUND * least and double > _STEP_BOUND * least and most > _STEP_BOUND * double


def _seconds(
    function: Callable[[Any], object], values: list[Any], times: int, clock: Callable[[], float] = time.thread_time
) -> float:
    """Return the CPU time for all values, ``times`` over, of this thread, or by another clock."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        start = clock()
        for _ in range(times):
            for value in values:
                try:
                    function(value)
                except ValueError:
                    continue
        return clock() - start
    finally:
        if enabled:
            gc.enable()


def patterns_of(package: ModuleType) -> dict[str, re.Pattern[str]]:
    """Return the compiled patterns in the modules of a package, as ``module:name``."""
    return {
        f"{module.__name__.removeprefix(package.__name__ + '.')}:{name}": value
        for module in _modules(package)
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern)
    }


def near_misses(pattern: re.Pattern[Any]) -> dict[str, Shape]:
    """Return shapes that nearly match: an example of the pattern up to each of its repeats, and that over and over.

    They end as no example does. What the repeat comes after is repeated with it, too: a search restarts at each.
    """
    kind = type(pattern.pattern)
    shapes: dict[str, Shape] = {}
    for head, piece in dict.fromkeys(_repeats(_re_parser.parse(pattern.pattern, pattern.flags), "")):
        for name, start, unit in (("", head, piece), (" from each start", "", head + piece)):
            for tail in ("", "\x01"):
                text = repeated(unit, start, tail)
                shapes[f"{start!r} + {unit!r} * n + {tail!r}{name}"] = (
                    text if kind is str else lambda length, text=text: text(length).encode("latin-1", "replace")
                )
    return shapes


def _repeats(tree: Any, before: str) -> Iterator[tuple[str, str]]:
    """Yield an example of the part before each repeat, and of the repeated part."""
    text = before
    for operator, value in tree:
        name = str(operator)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _, most, inner = value
            for choice in _choices(inner):
                if most is _re_parser.MAXREPEAT or most > 50:
                    yield text, choice
                yield from _repeats(inner, text)
        elif name in ("SUBPATTERN", "ATOMIC_GROUP", "BRANCH"):
            for inner in value[1] if name == "BRANCH" else [value[-1] if name == "SUBPATTERN" else value]:
                yield from _repeats(inner, text)
        text += _example([(operator, value)])


def _choices(tree: Any) -> list[str]:
    """Return examples of the repeated part: one of each branch."""
    for operator, value in tree:
        inner = value[-1] if str(operator) == "SUBPATTERN" else tree if str(operator) == "BRANCH" else None
        if str(operator) == "BRANCH":
            return [_example(branch) or "a" for branch in value[1]]
        if inner is not None:
            return _choices(inner)
        break
    return [_example(tree) or "a"]


def _example(tree: Any) -> str:
    """Return a text that an expression matches, repeats taken once; look-arounds are ignored."""
    found = ""
    for operator, value in tree:
        match str(operator):
            case "LITERAL":
                found += chr(value)
            case "ANY" | "NOT_LITERAL":
                found += "a" if value != ord("a") else "b"
            case "IN":
                found += _member(value)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                found += _example(value[2]) * max(value[0], min(value[1], 1))
            case "SUBPATTERN":
                found += _example(value[-1])
            case "ATOMIC_GROUP":
                found += _example(value)
            case "BRANCH":
                found += _example(value[1][0])
    return found


_SAMPLES = "aA1 ./<>=\"'&;:-_\t\n\r#%([{\\é中\x80\x02~|*+?!@$^,}])xX"


def _member(members: Any) -> str:
    """Return a character of a set."""
    single = re.compile(_set_source(members))
    return next((each for each in _SAMPLES if single.fullmatch(each)), _first(members))


def _set_source(members: Any) -> str:
    categories = {"CATEGORY_DIGIT": "\\d", "CATEGORY_SPACE": "\\s", "CATEGORY_WORD": "\\w",
                  "CATEGORY_NOT_DIGIT": "\\D", "CATEGORY_NOT_SPACE": "\\S", "CATEGORY_NOT_WORD": "\\W"}  # fmt: skip
    parts = []
    for operator, value in members:
        match str(operator):
            case "NEGATE":
                parts.append("^")
            case "LITERAL":
                parts.append(re.escape(chr(value)))
            case "RANGE":
                parts.append(f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}")
            case "CATEGORY":
                parts.append(categories[str(value)])
    return f"[{''.join(parts)}]"


def _first(members: Any) -> str:
    found = [value[0] if str(operator) == "RANGE" else value for operator, value in members if value is not None]
    return chr(next(each for each in found if isinstance(each, int)))


def use_of(pattern: re.Pattern[Any], methods: set[str]) -> Callable[[Any], object]:
    """Return how a pattern is used, by the names of its methods: at one place, or wherever it is found."""
    if methods and methods <= {"match", "fullmatch"}:
        uses = [getattr(pattern, method) for method in methods]
        return lambda text: [use(text) for use in uses]

    def everywhere(text: Any) -> None:
        for _ in pattern.finditer(text):
            pass

    return everywhere


@cache
def methods_of(package: ModuleType) -> dict[str, set[str]]:
    """Return which methods of a pattern its module calls, as ``module:name`` -> names."""
    found: dict[str, set[str]] = {}
    for module in _modules(package):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                name = f"{module.__name__.removeprefix(package.__name__ + '.')}:{node.value.id}"
                found.setdefault(name, set()).add(node.attr)
    return found


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)
