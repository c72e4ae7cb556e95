"""Groups of tests for parallel workers: tests that share a server or a module stay together.

A worker takes one group after the other and starts the servers that they use. xdist_group is not used: pytest-xdist 3.8
adds the group to a test's id in a way that pytest 9.2 passes over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import CodeType

import pytest
from xdist.scheduler import LoadScopeScheduling

GROUPS = {
    "hadoop": (
        "mapreduce/test_yarn_crawl", "mapreduce/test_yarn_kills", "mapreduce/test_hadoop",
        "mapreduce/test_package_archive",
    ),
    "hbase": (
        "jobs/test_hbase_crawl", "jobs/test_readdb_hbase", "jobs/test_recording_hbase",
        "jobs/test_batch_lists_hbase", "jobs/test_due_scan_hbase",
        "table/test_hbase", "table/test_hbase_cells",
        "table/test_hbase_table_export", "table/test_hbase_failures", "table/test_hbase_services",
        "jobs/test_concurrent_jobs_hbase", "foreign_writer/test_foreign_writer_hbase",
        "kill/test_gateway", "search/test_search_log_hbase",
        # two Sparks at once would see each other's files, and one module uses HBase, too
        "jobs/test_pagerank_runners", "mapreduce/test_spark",
    ),
    "kill": ("jobs/test_killed_jobs",),
    "solr": (
        "indexer/test_elastic", "indexer/test_solr", "indexer/test_solr_crawl", "kill/test_solr",
        "search/test_query_suite", "search/test_human_queries", "search/test_near_misses", "search/test_solr_handler",
        "search/test_solr_search",
        "server/test_search_api", "server/test_search_page_all_indexes", "server/test_browser",
        "server/test_rejected_requests", "server/test_hostile_queries",
        "search/test_query_cost", "test_ranking_solr",
    ),
    "site": ("jobs/test_real_site",),
}  # fmt: skip
"""Modules that stay together. The longest are first: started last, one would keep a single worker busy at the end.

Every other module is a group of its own.
"""
_GROUP_OF = {f"tests/{module}.py": group for group, modules in GROUPS.items() for module in modules}
_RANK = {group: rank for rank, group in enumerate(GROUPS)}


SEARCH_PATHS = ("/search.json", "/suggest", "/explain", "/cached", "/cached/view", "/api/v1/search", "/api/v1/suggest")
"""Paths of a server, next to ``/``, whose work depends on a query or a page."""
LONG = {
    **dict.fromkeys(
        (
            f"jobs/test_hbase_crawl.py::test_killed_hbase_server_during_job_is_recovered[{job}-master]"
            for job in ("inject", "generate", "fetch", "parse", "index")
        ),
        "updatedb loses its master",
    ),
    **dict.fromkeys(
        (
            f"jobs/test_hbase_crawl.py::test_killed_hbase_server_during_job_is_recovered[{job}-gateway]"
            for job in ("inject", "generate", "fetch", "parse")
        ),
        "one client retries for every job: updatedb and index lose their gateway",
    ),
    **dict.fromkeys(
        (
            f"jobs/test_killed_jobs.py::test_killed_job_is_completed_by_rerun[{job}-local]"
            for job in ("inject", "generate", "parse", "index", "scores")
        ),
        "fetch and updatedb are killed on this runner, every job on inline",
    ),
    "users/test_cron_job.py::test_rest_requests_replace_crawl_script[OurPaths]": "the paths of Nutch, on the same jobs",
    "users/test_sick_crawl.py::test_doctor_robots_txt_denying_our_agent_is_reported": "robots.txt denies everything",
    **dict.fromkeys(
        (
            f"jobs/test_taken_over_intranet.py::test_taken_over_intranet_survives_weeks_of_local_failures[month-{jobs}]"
            for jobs in ("jobs-continue", "jobs-stop")
        ),
        "twelve days contain the same failures",
    ),
    "jobs/test_due_scan.py::test_due_index_chooses_same_rows_as_full_scan[200]": "fewer random tables are tried",
    "jobs/test_due_scan_hbase.py::test_due_index_chooses_same_rows_as_full_scan[50]": "fewer random tables are tried",
    "jobs/test_batch_lists_hbase.py::test_hbase_long_list_is_split_and_deleted[50]": "a list is long by its size alone",
    "jobs/test_batch_report.py::test_batch_states_match_rows_after_any_job_order[3]": "one order of jobs is tried",
    **dict.fromkeys(
        (
            f"jobs/test_full_disk.py::test_full_disk_ends_job_with_reason[exporttable-{number}]"
            for number in (122, 27, 30)
        ),
        "the index meets the same errors",
    ),
    "soak/test_soak.py::test_equal_rounds_in_one_process_accumulate_no_objects": "small jobs are repeated",
    "jobs/test_hostile.py::test_hostile_hosts_do_not_slow_honest_ones": "all honest pages are indexed",
    **dict.fromkeys(
        (
            f"jobs/test_signals_large_pages.py::test_interrupted_job_on_large_pages_is_completed_by_rerun[{job}-{runner}-{number}]"
            for job in ("inject", "fetch", "parse", "updatedb", "index", "dedup", "pagerank", "generate-again")
            for runner in ("inline", "local")
            for number in (2, 15)
            if (job, runner, number) not in {("parse", "local", 15), ("updatedb", "inline", 2)}
        ),
        "parse and updatedb are stopped",
    ),
    **dict.fromkeys(
        (
            f"browser/test_browser_limits.py::test_page_that_leaves_for_overlong_url_keeps_its_own[{rules}]"
            for rules in ("delay=0.1", "load", "idle")
        ),
        "pages that stay are tried, and one that leaves by a form",
    ),
    "browser/test_browser_limits.py::test_no_url_of_page_is_stored_beyond_limit[more]": "the usual ways are tried",
    "browser/test_hostile_pages.py::test_hanging_browser_is_replaced[browser]": "the driver hangs",
    "foreign_writer/test_foreign_writer_hbase.py::test_generate_chooses_what_full_scan_chooses_after_each_write": (
        "the stand-in is written, and a real index compared with a scan"
    ),
    **dict.fromkeys(
        (
            "test_image.py::test_image_contains_program_without_build_tools",
            "test_image.py::test_image_creates_table_in_volume_and_serves_it",
            "test_image.py::test_image_reads_conf_folder_of_volume[words0]",
            "test_image.py::test_image_reads_conf_folder_of_volume[words1]",
        ),
        "the files agree",
    ),
    "browser/test_hostile_pages.py::test_hostile_pages_end_with_status_and_others_are_unaffected[all]": (
        "most of them are tried"
    ),
    "jobs/test_same_table.py::test_every_runner_and_task_count_gives_same_table[local, no list, 3 reduces]": (
        "each of the three is a test"
    ),
    **dict.fromkeys(
        (
            f"jobs/test_taken_over_recording.py::test_table_of_nutch_survives_thirty_days_of_local_failures[{jobs}]"
            for jobs in ("jobs-continue", "jobs-stop")
        ),
        "the jobs run on five of the thirty days; a table of our own is taken over on each of twelve",
    ),
    **dict.fromkeys(
        (
            f"jobs/test_recording_hbase.py::test_recorded_updatedb_table_is_reproduced[{number}-by list]"
            for number in range(1, 5)
        ),
        "by scan here, by list on the embedded table",
    ),
    **dict.fromkeys(
        (
            f"server/test_foreign_origin.py::test_foreign_page_changes_nothing[{kind}]"
            for kind in ("address-http", "address, relay-http", "loopback without login-http")
        ),
        "loopback and a relay with TLS are tried",
    ),
    **dict.fromkeys(
        (
            f"browser/test_browser_start.py::test_killed_browser_subprocess_loses_no_page[{name}]"
            for name in ("StorageService", "NetworkService")
        ),
        "one subprocess is killed, and the whole browser",
    ),
    "table/test_hbase_services.py::test_data_survives_restart": "HBase is killed and started by other modules",
    "jobs/test_unreadable_rows.py::test_every_job_skips_unreadable_rows[local]": "inline goes the same way",
    "mapreduce/test_hadoop.py::test_plugin_failures_over_limit_end_job_with_exit_code_7": (
        "on the local runner it ends with 7, and what a task's exit code on YARN means is tried"
    ),
    "mapreduce/test_spark.py::test_spark_crawl_round_gives_same_table": "pagerank runs on Spark",
    "mapreduce/test_yarn_kills.py::test_killed_mapper_and_reducer_of_fetch_are_rerun": "those of updatedb are killed",
    **dict.fromkeys(
        (
            f"mapreduce/test_yarn_crawl.py::test_yarn_crawl_{name}[every job]"
            for name in (
                "table_equals_inline_table",
                "host_table_equals_inline",
                "solr_documents_equal_inline",
                "job_summaries_equal_inline",
                "jobs_have_several_tasks",
                "pagerank_uses_mapreduce_and_inline_memory",
                "leaves_only_package_on_hdfs",
                "each_host_is_fetched_by_one_task",
                "host_delay_holds_over_job",
            )
        ),
        "fetch, updatedb and index run on YARN, and the others on two other runners",
    ),
    **dict.fromkeys(
        (
            "mapreduce/test_yarn_kills.py::test_terminated_driver_of_fetch_ends_application_and_resumes",
            "mapreduce/test_yarn_kills.py::test_killed_driver_of_updatedb_is_resumed",
        ),
        "tasks of updatedb on YARN are killed, and drivers of every job on the other runners",
    ),
    "crawl_loop/test_resumed_crawl.py::test_crawl_stopped_at_any_job_completes": (
        "its last round and the jobs after it are"
    ),
    **dict.fromkeys(
        (
            f"test_doc_blocks.py::test_page_runs_as_written[{page}]"
            for page in ("index", "crawl", "report", "cron-and-systemd", "monitoring", "chinese", "recrawl")
        ),
        "other pages run a crawl, and options are parsed",
    ),
    **dict.fromkeys(
        (f"test_site.py::test_every_page_is_accessible[{scheme}]" for scheme in ("light", "dark")),
        "a page of each kind is checked",
    ),
    **dict.fromkeys(
        (
            "test_install.py::test_pip_installs_wheel_with_extras[pip==23.0.1]",
            "test_install.py::test_pip_installs_wheel_with_extras[pip]",
            "test_install.py::test_tool_installs_command[uv-command0]",
            "test_install.py::test_tool_installs_command[pipx-command1]",
        ),
        "the wheel is installed without an index by other tests",
    ),
    **dict.fromkeys(
        (f"test_tutorials.py::test_tutorial_runs_as_written[{page}]" for page in ("first-cluster", "from-nutch-2")),
        "their options are parsed, and tests of jobs on HBase and YARN run the same commands",
    ),
    **dict.fromkeys(
        (
            "server/test_native_growth.py::test_cpu_time_is_linear_in_size_of_pages",
            *(
                f"server/test_native_growth.py::test_cpu_time_is_linear_in_length_of_query[{path}]"
                for path in ("/", *SEARCH_PATHS)
            ),
        ),
        "calls of Python functions, the work of queries and cached copies are measured",
    ),
    "parser/formats/test_growth.py::test_format_parser_time_is_linear_at_half_megabyte": "those of 32 KB are measured",
    "parser/test_languages.py::test_crawl_fetches_every_page_once_and_each_is_found_by_its_words": (
        "its pages and links are parsed"
    ),
    "parser/test_real_trees.py::test_every_page_link_and_character_of_tree_is_parsed[linux-doc-6.1]": (
        "three other packages are read"
    ),
}
"""Tests that run with ``scripts/test long`` only, and what of them runs always."""


SERVICE_FIXTURES = frozenset(
    {"hadoop_cluster", "hbase_server", "solr_server", "opensearch_server", "tika", "three_nodes"}
    | {"render", "homes", "browser", "chrome", "chromium", "installed"}
)
"""Fixtures that start a server or a browser, or install a wheel."""
SERVICE_MODULES = frozenset(
    {
        "browser/test_hostile_pages", "browser/test_browser_start", "browser/test_own_requests",
        "browser/test_rendering", "browser/test_app_frameworks", "cluster/test_crawl", "mapreduce/test_spark",
        "mapreduce/test_package_archive",
        "jobs/test_real_site", "jobs/test_pagerank_runners", "parser/test_real_trees", "parser/formats/test_tika_files",
        "parser/test_fuzz", "test_image", "test_services",
        # no server, but commands and processes by the dozen, killed, stopped, measured or installed
        "jobs/test_killed_jobs", "jobs/test_signals", "jobs/test_signals_large_pages", "jobs/test_hostile",
        "jobs/test_undeclared_chinese", "jobs/test_concurrent_jobs", "jobs/test_full_disk",
        "jobs/test_same_table", "jobs/test_unreadable_rows",
        # whole crawls by the dozen: more than ten seconds of a core each, while other modules of jobs take one
        "jobs/test_taken_over_intranet", "jobs/test_taken_over_recording", "jobs/test_failing_plugins",
        "jobs/test_local_failures_in_jobs", "jobs/test_pagerank", "jobs/test_deletion_limit", "jobs/test_index_deletes",
        "jobs/test_fetcher_storage", "jobs/test_order_of_writes", "jobs/test_batch_report",
        "foreign_writer/test_foreign_writer", "table/test_resident_pages",
        "kill/test_harness", "kill/test_gateway", "kill/test_solr", "soak/test_soak", "outages/test_outages",
        "disks/test_disks", "disks/test_full_server_disk",
        "fuzz/test_fuzz", "upgrade/test_upgrade", "users/test_cron_job", "users/test_own_site", "users/test_sick_crawl",
        "crawl_loop/test_crawl_command", "crawl_loop/test_resumed_crawl", "crawl_loop/test_crawl_pagerank",
        "control_room/test_failing_crawl", "joblog/test_monitoring_servers",
        "parser/test_parse_worker", "rest/test_jobs",
        "rest/test_generated", "rest/test_generated_client", "rest/test_schemathesis", "rest/test_killed_server",
        "scrapy_projects/test_tutorial", "scrapy_projects/test_hostile_projects",
        "url/test_growth", "parser/test_growth", "parser/formats/test_growth", "parser/test_decompression_bombs",
        "test_growth", "test_growth_of_functions", "test_growth_of_patterns",
        "test_bench", "test_scale", "test_collection", "test_ranking_bench", "test_ranking_planted", "test_python_page",
        "test_scripts", "test_crawl_process", "test_site", "test_tutorials",
    }
)  # fmt: skip
"""Modules that start servers, browsers or processes in helpers, or run jobs for long."""


def servers_of(item: pytest.Item) -> set[str]:
    """Return the fixtures that a test uses, with those that a parameter of a fixture names (mark ``server``)."""
    return {*getattr(item, "fixturenames", ()), *(mark.args[0] for mark in item.iter_markers("server"))}


def _module_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0].removeprefix("tests/").removesuffix(".py")


_PROCESS_NAMES = frozenset(
    {"subprocess", "Popen", "Process", "strike", "Kills", "SIGKILL", "SIGSTOP", "sync_playwright"}
    | {"start_job", "wait_for_state"}
)
"""Names that start, stop, await or kill processes; the last two are those of the REST tests' client."""
_MEASURING_NAMES = frozenset({"assert_linear"})
_PROCESS_RUNNERS = frozenset({"local", "spark", "hadoop"})


def has_name_of(names: Collection[str], function: Callable[..., object]) -> bool:
    """Return whether the code of a function, or of one within it, uses one of some global names or attributes."""
    codes = [function.__code__] if hasattr(function, "__code__") else []
    while codes:
        code = codes.pop()
        if not frozenset(names).isdisjoint(code.co_names):
            return True
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return False


def needs_service(item: pytest.Item) -> bool:
    """Return whether a test needs something outside of its own process; the inner loop omits it.

    That is a server, a browser, a cluster, or processes: by a fixture, by the test's own code, by a parameter that is
    the name of a runner whose tasks are processes, or else by its module. So are tests that measure for seconds.
    """
    if _module_of(item) in SERVICE_MODULES or not SERVICE_FIXTURES.isdisjoint(servers_of(item)):
        return True
    parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
    if any(isinstance(value, str) and value in _PROCESS_RUNNERS for value in parameters):
        return True
    return has_name_of(_PROCESS_NAMES | _MEASURING_NAMES, getattr(item, "function", needs_service))


def starts_processes(function: Callable[..., object]) -> bool:
    """Return whether the code of a function names what starts or kills processes."""
    return has_name_of(_PROCESS_NAMES, function)


def is_long(nodeid: str) -> bool:
    """Return whether a test is one of :data:`LONG`."""
    return nodeid.removeprefix("tests/") in LONG


def group_of(nodeid: str) -> str:
    """Return the group of a test by its id."""
    module = nodeid.partition("::")[0]
    return _GROUP_OF.get(module, module)


SERVICE_GROUPS = ("hadoop", "hbase", "solr")


def service_group_of(nodeid: str) -> str:
    """Return which group of servers a test belongs to, ``other`` for none."""
    group = group_of(nodeid)
    return group if group in SERVICE_GROUPS else "other"


def in_order(items: list[pytest.Item]) -> None:
    """Put the tests of the groups above first, then the modules that take long.

    Begun last, one of these would keep a worker busy alone at the end.
    """

    def rank(item: pytest.Item) -> int:
        group = group_of(item.nodeid)
        return _RANK.get(group, len(_RANK) + (_module_of(item) not in SERVICE_MODULES))

    items.sort(key=rank)


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Gives the workers whole groups."""

    _split_scope: Callable[[LoadScopeScheduling, str], str] = staticmethod(group_of)  # type: ignore[assignment]
