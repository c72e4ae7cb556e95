"""Modules loaded in forked tasks of the local runner."""

import json
import subprocess
import sys
from importlib.metadata import EntryPoint

from nutch2py.conf.configuration import Configuration
from nutch2py.plugins import loading

_LOADED = """
import importlib, json, sys, threading
from nutch2py.conf.configuration import Configuration
from nutch2py.mapreduce.runners.fork_server import _preload
module, name, includes = sys.argv[1:]
job = getattr(importlib.import_module(module), name)
before = set(sys.modules)
_preload(job, Configuration.load(overrides={"plugin.includes": includes}))
print(json.dumps([sorted(set(sys.modules) - before), threading.active_count()]))
"""


def loaded(module, name, includes):
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, module, name, includes], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_fork_server_preloads_store_and_plugins_without_threads():
    names, threads = loaded(
        "nutch2py.jobs.inject.inject_job", "InjectorJob", "urlfilter-regex|urlnormalizer-basic|parse-html"
    )
    assert {
        "nutch2py.table.embedded",
        "nutch2py.url.filters.regex_url_filter",
        "nutch2py.url.normalizers.basic_url_normalizer",
    } <= {*names}
    assert not {
        "nutch2py.url.normalizers.regex_url_normalizer",
        "nutch2py.parser.formats.html",
        "nutch2py.table.hbase",
    } & {*names}
    assert threads == 1


def test_fork_server_does_not_load_third_party_plugins(monkeypatch):
    entries = [
        EntryPoint(f"urlfilter-{name}", f"{name}:Filter", "nutch2py.urlfilter") for name in ("theirs", "nutch2py.ours")
    ]
    monkeypatch.setattr(loading, "installed_plugins", lambda point: {entry.name: entry for entry in entries})
    asked = []
    monkeypatch.setattr(loading, "load_plugin", asked.append)
    loading.import_builtin_plugins(Configuration({"plugin.includes": "urlfilter-.*"}), "urlfilter")
    assert asked == entries[1:]
