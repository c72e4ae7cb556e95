"""What tasks of the runner local find loaded when they are forked."""

import json
import subprocess
import sys
from importlib.metadata import EntryPoint

from nutch2py import plugins
from nutch2py.conf import Configuration

_LOADED = """
import importlib, json, sys, threading
from nutch2py.conf import Configuration
from nutch2py.mapreduce.warm import _load
module, name, includes = sys.argv[1:]
job = getattr(importlib.import_module(module), name)
before = set(sys.modules)
_load(job, Configuration.load(overrides={"plugin.includes": includes}))
print(json.dumps([sorted(set(sys.modules) - before), threading.active_count()]))
"""


def loaded(module, name, includes):
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, module, name, includes], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_tasks_find_the_store_and_the_plug_ins_that_their_job_asks_and_no_thread():
    names, threads = loaded("nutch2py.jobs.inject", "InjectorJob", "urlfilter-regex|urlnormalizer-basic|parse-html")
    assert {"nutch2py.table.embedded", "nutch2py.url.filter_regex", "nutch2py.url.normalize_basic"} <= {*names}
    assert not {"nutch2py.url.normalize_regex", "nutch2py.parser.formats.html", "nutch2py.table.hbase"} & {*names}
    assert threads == 1


def test_plug_ins_of_other_packages_are_left_to_the_tasks(monkeypatch):
    entries = [
        EntryPoint(f"urlfilter-{name}", f"{name}:Filter", "nutch2py.urlfilter") for name in ("theirs", "nutch2py.ours")
    ]
    monkeypatch.setattr(plugins, "registered", lambda point: {entry.name: entry for entry in entries})
    asked = []
    monkeypatch.setattr(plugins, "load", asked.append)
    plugins.load_built_in(Configuration({"plugin.includes": "urlfilter-.*"}), "urlfilter")
    assert asked == entries[1:]
