"""Private names of other packages: any release may move them, so each is listed, with a test of its use.

Unlisted uses fail, and listed names that no longer exist.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections import defaultdict
from types import FunctionType

import pytest

import nutch2py
from nutch2py.mapreduce.runners.mrjob_compat import mrjob_importable
from tests.import_graph import DOCUMENTED, ROOT, distribution_of, imported, is_private, paths, trees

NAMES = {
    "mrjob.local:_sort_lines_with_sort_bin": "tests/mapreduce/test_inline_sort.py",
    "mrjob.sim:_sort_lines_in_memory": "tests/mapreduce/test_inline_sort.py",
    "mrjob.logs.spark:_parse_spark_log": "tests/mapreduce/test_spark.py",
    "mrjob.logs.step:_interpret_hadoop_jar_command_stderr": "tests/mapreduce/test_hadoop.py",
    "scrapy.core.downloader.handlers._aiohttp:AiohttpDownloadHandler": "tests/fetcher/test_address_filter.py",
    "scrapy.core.downloader.handlers._httpx:HttpxDownloadHandler": "tests/fetcher/test_fetching.py",
    "scrapy.downloadermiddlewares.cookies:_split_domain": "tests/fetcher/test_scrapy_addons.py",
    "re._parser:parse": "tests/url/test_regex_prefilter.py",
    "re._constants:LITERAL": "tests/url/test_regex_prefilter.py",
}
"""Private modules and names that are imported or named in a string, with the test of what they are used for."""
MEMBERS = {
    "_recv": ("thriftpy2.thrift:TClient", "tests/table/test_hbase_failures.py"),
    "_send": ("thriftpy2.thrift:TClient", "tests/table/test_hbase_failures.py"),
    "_send_request": ("pysolr:Solr", "tests/backends/test_solr_client.py"),
    "_get_handler": ("scrapy.core.downloader.handlers:DownloadHandlers", "tests/fetcher/test_fetching.py"),
    "_Database": ("lmdb:cpython", "tests/table/test_embedded.py"),
    "_create_temp_file": ("warcio.warcwriter:WARCWriter", "tests/fetcher/test_warc.py"),
}
"""Private members of objects of other packages, with their class and a test."""
INHERITED = {
    "fetcher.protocols.dns._AresResolver": ({"_channel"}, "tests/fetcher/test_dns.py"),
    "mapreduce.table_job.TableJob": (
        {"_read_input", "_runner_kwargs", "_wrap_protocols"},
        "tests/mapreduce/test_driver.py",
    ),
    "mapreduce.runners.mrjob_compat.JobKeyMixin": (
        {"_label", "_make_unique_job_key", "_owner"},
        "tests/mapreduce/test_driver.py",
    ),
    "mapreduce.runners.local_runners._OneLinePerMapRunner": (
        {"_get_local_tmp_dir", "_sort_input_func", "_sort_values", "_sorted_reducer_input_path"}
        | {"_split_mapper_input", "_split_reducer_input", "_task_input_path"},
        "tests/mapreduce/test_inline_sort.py",
    ),
    "mapreduce.runners.local_runners.InlineRunner": (
        {"_invoke_task_func", "_mr_job_extra_args", "_mrjob_cls"},
        "tests/mapreduce/test_driver.py",
    ),
    "mapreduce.runners.local_runners.LocalRunner": (
        {"_invoke_task_func", "_mr_job_extra_args", "_opts", "_run_multiple"},
        "tests/mapreduce/test_driver.py",
    ),
    "mapreduce.runners.spark_runner.SparkRunner": (
        {"_get_input_paths", "_get_local_tmp_dir", "_jobconf_for_step", "_run_spark_submit"},
        "tests/mapreduce/test_spark.py",
    ),
    "mapreduce.runners.hadoop.hadoop_runner.HadoopRunner": (
        {"_cleanup_hadoop_tmp", "_get_local_tmp_dir", "_get_step", "_get_steps", "_hadoop_tmp_dir", "_input_paths"}
        | {"_job_key", "_jobconf_for_step", "_output_dir", "_run", "_run_hadoop", "_run_job_in_hadoop"}
        | {"_step_input_uris", "_upload_mgr"},
        "tests/mapreduce/test_hadoop.py",
    ),
    "table.hbase.thrift_client.gateway_connection.GatewayConnection": (
        {"_protocol_class", "_refresh_thrift_client", "_transport_class"},
        "tests/table/test_hbase.py",
    ),
}
"""Private members of foreign base classes that a class of ours overrides or uses, with a test.

A name that the foreign class no longer has is not found, and the comparison fails.
"""


def private_names() -> set[str]:
    """Return the private names of others that are imported, or written as a path in a string."""
    found = set()
    for tree in trees("nutch2py").values():
        for path in {*imported(tree), *paths(tree)}:
            top, *rest = path.split(".")
            if top != "nutch2py" and any(map(is_private, rest)):
                found.add(path)
    return found


def test_foreign_private_names_are_listed() -> None:
    listed = {name.replace(":", ".") for name in NAMES}
    modules = {name.partition(":")[0] for name in NAMES}
    found = private_names()
    assert sorted(found - listed - modules) == []
    assert [name for name in sorted(listed) if not any(name.startswith(path) for path in found)] == []


@pytest.mark.parametrize("name", NAMES)
def test_listed_private_name_exists(name: str) -> None:
    module, _, member = name.partition(":")
    with mrjob_importable():
        assert hasattr(importlib.import_module(module), member)


def private_members() -> dict[str, list[str]]:
    """Return the private attributes of objects other than ``self`` that the module does not define itself."""
    found = defaultdict(list)
    for name, tree in trees("nutch2py").items():
        own = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                own.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                own.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _of_self(node):
                own.add(node.attr)
        for node in ast.walk(tree):
            private = isinstance(node, ast.Attribute) and is_private(node.attr) and not _of_self(node)
            if private and node.attr not in own | DOCUMENTED:
                found[node.attr].append(f"{name}:{node.lineno}")
    return found


def _of_self(node: ast.Attribute) -> bool:
    return ast.unparse(node.value) in ("self", "cls", "super()")


def test_foreign_private_members_are_listed() -> None:
    found = private_members()
    assert {name: where for name, where in found.items() if name not in MEMBERS} == {}
    assert sorted(MEMBERS.keys() - found.keys()) == []


@pytest.mark.parametrize("member", MEMBERS)
def test_listed_private_member_exists(member: str) -> None:
    module, _, name = MEMBERS[member][0].partition(":")
    assert callable(getattr(getattr(importlib.import_module(module), name), member))


def names_known_to(foreign: type) -> set[str]:
    """Return the private names that a class defines or speaks of."""
    found = set(vars(foreign))
    for value in vars(foreign).values():
        function = inspect.unwrap(value.fget if isinstance(value, property) else getattr(value, "__func__", value))
        if isinstance(function, FunctionType):
            found.update(function.__code__.co_names)
    return {name for name in found if is_private(name)}


def inherited() -> dict[str, set[str]]:
    """Return, for each class of ours with a foreign base class, the private names that both know."""
    found = defaultdict(set)
    for information in pkgutil.walk_packages(nutch2py.__path__, "nutch2py."):
        module = importlib.import_module(information.name)
        for value in vars(module).values():
            if inspect.isclass(value) and value.__module__ == information.name:
                own = {base for base in value.__mro__ if base.__module__.startswith("nutch2py.")}
                foreign = [base for base in value.__mro__ if distribution_of(base.__module__) is not None]
                theirs = {name for base in foreign for name in names_known_to(base)}
                for base in own:
                    if common := names_in_source(base) & theirs:
                        found[f"{base.__module__.removeprefix('nutch2py.')}.{base.__name__}"] |= common
    return found


def names_in_source(ours: type) -> set[str]:
    """Return the private names that the text of a class defines, or uses of ``self``."""
    tree = trees("nutch2py")[ours.__module__]
    body = next(
        (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == ours.__name__), None
    )
    found = set()
    for node in ast.walk(body) if body is not None else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and _of_self(node):
            found.add(node.attr)
    return {name for name in found if is_private(name)}


def test_private_members_of_foreign_bases_are_listed() -> None:
    assert inherited() == {name: members for name, (members, _) in INHERITED.items()}


def test_tests_of_private_names_exist() -> None:
    named = [*NAMES.values(), *(test for _, test in MEMBERS.values()), *(test for _, test in INHERITED.values())]
    assert [path for path in named if not (ROOT / path).is_file()] == []
