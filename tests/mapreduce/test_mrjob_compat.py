"""Modules hidden from mrjob stay visible to other code."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

import pytest

from nutch2py.mapreduce.runners.mrjob_compat import mrjob_importable


def test_other_thread_imports_modules_hidden_from_mrjob(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plug-in that reads YAML may be loaded by one thread while another one starts a job."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("yaml", "_yaml")]:
        monkeypatch.delitem(sys.modules, name)
    before = [*sys.meta_path]
    with ThreadPoolExecutor(1) as other, mrjob_importable():
        with pytest.raises(ModuleNotFoundError, match="No module named 'yaml'"):
            import_module("yaml")
        assert other.submit(import_module, "yaml").result().safe_load("a: 1") == {"a": 1}
    assert sys.meta_path == before
    assert import_module("yaml").safe_load("b") == "b"
