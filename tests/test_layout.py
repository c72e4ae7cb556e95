"""How the code is laid out: no module is longer than what one looks through at once."""

from __future__ import annotations

from tests.conftest import ROOT

_LONGEST = 400  # lines


def test_every_module_is_within_length_limit() -> None:
    modules = [path for folder in ("nutch2py", "bench") for path in (ROOT / folder).rglob("*.py")]
    assert len(modules) > 300
    lines = {path.relative_to(ROOT): len(path.read_text("utf-8").splitlines()) for path in modules}
    assert {path: count for path, count in lines.items() if count > _LONGEST} == {}
