"""Operations under ``/api/v1``."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import islice

from msgspec import structs

from nutch2py.conf.configuration import Configuration
from nutch2py.conf.redaction import redact_property
from nutch2py.crawl_reader import CrawlReader
from nutch2py.errors import InputError, NutchError
from nutch2py.joblog.job_entry import JobEntry
from nutch2py.records.webpage import WebPage
from nutch2py.rest.access.allowed_properties import check_allowed
from nutch2py.rest.access.tokens import Role
from nutch2py.rest.context import RestContext
from nutch2py.rest.dispatch.operation import ApiCall, Operation
from nutch2py.rest.endpoints.rest_schemas import (
    BatchesQuery,
    CrawlQuery,
    CrawlStatistics,
    DeleteResponse,
    HealthResponse,
    JobDetail,
    JobOutput,
    JobsQuery,
    ListQuery,
    LogQuery,
    NewConfiguration,
    OpenBatch,
    OutputQuery,
    PropertyBody,
    RowsQuery,
    StoredConfiguration,
)
from nutch2py.rest.endpoints.row_queries import RowsResult, get_row, key_range, scan_rows, select_fields
from nutch2py.rest.endpoints.search_api import report_click, search, suggest
from nutch2py.rest.http_error import not_found
from nutch2py.rest.job_control.job_processes import JobProcess
from nutch2py.rest.job_control.job_requests import AnyJobRequest
from nutch2py.rest.job_control.schedules import NewSchedule, StoredSchedule, next_run_time
from nutch2py.rest.job_control.seed_lists import NewSeedList, SeedList
from nutch2py.search.search_schemas import ClickReport, SearchQuery, SearchResponse, SuggestQuery, SuggestResponse
from nutch2py.table import open_store
from nutch2py.version import __version__

_PREFIX = "/api/v1"


def _get_health(_: ApiCall) -> HealthResponse:
    return HealthResponse(status="ok", version=__version__)


def _get_metrics(call: ApiCall) -> str:
    query: CrawlQuery = call.query
    return call.context.metrics.render(call.context.jobs.all()) + _render_crawl_metrics(call.context, query)


def _render_crawl_metrics(context: RestContext, query: CrawlQuery) -> str:
    """Return the metrics of a crawl. An unavailable store does not hide the metrics of the server."""
    from nutch2py.joblog.prometheus_metrics import build_gauge, render_exposition, render_families  # slow import

    crawl_id, text = query.crawl_id, ""
    try:
        conf = context.reading_configuration(query.crawl_id, query.configuration)
        crawl_id = conf.get_trimmed("storage.crawl.id")
        if open_store(conf, WebPage).exists():
            with CrawlReader.for_server(conf) as reader:
                text = render_exposition(reader, crawl_id)
    except NutchError:
        is_readable = 0
    else:
        is_readable = 1
    help_text = "1 if the store of the crawl could be read for this response, else 0."
    return render_families([build_gauge("crawl_readable", help_text, ("crawl",), [((crawl_id,), is_readable)])]) + text


def _list_jobs(call: ApiCall) -> list[JobProcess]:
    query: JobsQuery = call.query
    jobs = (
        job
        for job in call.context.jobs.all()
        if query.crawl_id in (None, job.crawl_id) and query.state in (None, job.state) and job.id < query.before
    )
    return list(islice(jobs, query.limit))


def _start_job(call: ApiCall) -> JobProcess:
    return call.context.start_job(call.body, call.caller)


def _get_job(call: ApiCall) -> JobDetail:
    job = call.context.jobs.get(call.path_params["id"])
    values = {name: getattr(job, name) for name in job.__struct_fields__}
    return JobDetail(**values, log_entries=call.context.job_log_entries(job))


def _stop_job(call: ApiCall) -> JobProcess:
    return call.context.jobs.stop(call.path_params["id"])


def _abort_job(call: ApiCall) -> JobProcess:
    return call.context.jobs.abort(call.path_params["id"])


def _delete_job(call: ApiCall) -> DeleteResponse:
    call.context.jobs.delete(call.path_params["id"])
    return DeleteResponse(id=call.path_params["id"])


def _get_job_output(call: ApiCall) -> JobOutput:
    query: OutputQuery = call.query
    alive = call.context.jobs.get(
        call.path_params["id"]
    ).state.is_alive  # checked before reading, so that no output is missed
    data, size = call.context.jobs.read_output(call.path_params["id"], query.offset, query.limit)
    end = min(query.offset, size) + len(data)
    return JobOutput(text=data.decode("utf-8", "replace"), next_offset=end, has_more=alive or end < size)


def _list_seed_lists(call: ApiCall) -> list[SeedList]:
    query: ListQuery = call.query
    return call.context.seed_lists.page(query.after, query.limit)


def _store_seed_list(call: ApiCall) -> SeedList:
    return call.context.seed_lists.store(call.body)


def _get_seed_list(call: ApiCall) -> SeedList:
    return call.context.seed_lists.get(call.path_params["id"])


def _delete_seed_list(call: ApiCall) -> DeleteResponse:
    call.context.seed_lists.delete(call.path_params["id"])
    return DeleteResponse(id=call.path_params["id"])


def _list_configurations(call: ApiCall) -> list[str]:
    query: ListQuery = call.query
    return call.context.configurations.page(query.after, query.limit)


def _get_configuration(call: ApiCall) -> StoredConfiguration:
    return masked_configuration(call, call.path_params["id"])


def masked_configuration(call: ApiCall, conf_id: str) -> StoredConfiguration:
    """Return a configuration with its secrets masked."""
    conf: Configuration = call.context.configurations.effective(conf_id)
    overrides = sorted(call.context.configurations.properties(conf_id))
    return StoredConfiguration(
        id=conf_id, overrides=overrides, properties={name: conf.get_redacted(name) for name in sorted(conf)}
    )


def _store_configuration(call: ApiCall) -> StoredConfiguration:
    new: NewConfiguration = call.body
    check_allowed(new.properties, call.caller.role)
    call.context.configurations.store(new.id, new.properties, new.force)
    return masked_configuration(call, new.id)


def _delete_configuration(call: ApiCall) -> DeleteResponse:
    call.context.configurations.delete(call.path_params["id"])
    return DeleteResponse(id=call.path_params["id"])


def _get_property(call: ApiCall) -> PropertyBody:
    conf, name = call.context.configurations.effective(call.path_params["id"]), call.path_params["name"]
    if name not in conf:
        raise not_found(f"property {name}")
    return PropertyBody(conf.get_redacted(name))


def _set_property(call: ApiCall) -> PropertyBody:
    value: PropertyBody = call.body
    check_allowed({call.path_params["name"]: value.value}, call.caller.role)
    call.context.configurations.set_property(call.path_params["id"], call.path_params["name"], value.value)
    return _get_property(call)


def _list_schedules(call: ApiCall) -> list[StoredSchedule]:
    query: ListQuery = call.query
    return [_with_next_run(each) for each in call.context.schedules.page(query.after, query.limit)]


def _with_next_run(schedule: StoredSchedule) -> StoredSchedule:
    """Return a schedule with its next run and with secret properties masked."""
    due = None
    with suppress(InputError):  # its file was edited by hand
        due = next_run_time(schedule.cron, datetime.now(UTC)) if schedule.enabled else None
    properties = {name: redact_property(name, value) for name, value in schedule.job.properties.items()}
    job = structs.replace(schedule.job, properties=properties)
    return structs.replace(schedule, job=job, next_run=None if due is None else int(due.timestamp() * 1000))


def _store_schedule(call: ApiCall) -> StoredSchedule:
    new: NewSchedule = call.body
    call.context.validate(new.job, call.caller)
    return _with_next_run(call.context.schedules.store(new, call.caller.name))


def _get_schedule(call: ApiCall) -> StoredSchedule:
    return _with_next_run(call.context.schedules.get(call.path_params["id"]))


def _delete_schedule(call: ApiCall) -> DeleteResponse:
    call.context.schedules.delete(call.path_params["id"])
    return DeleteResponse(id=call.path_params["id"])


def _list_batches(call: ApiCall) -> list[OpenBatch]:
    query: BatchesQuery = call.query
    with call.context.open_crawl_reader(query.crawl_id, query.configuration) as reader:
        batches = [each for each in reader.batches() if each.batch_id > query.after]
        return [
            OpenBatch(id=each.batch_id, state=each.state, time=each.time, count=each.count, done=each.done,
                  running_jobs=[*each.running_jobs])
            for each in batches[: query.limit]
        ]  # fmt: skip


def _query_rows(call: ApiCall) -> RowsResult:
    query: RowsQuery = call.query
    conf = call.context.existing_crawl_configuration(query.crawl_id, query.configuration)
    fields = select_fields(query.fields.split(","))
    if query.url:
        return get_row(conf, query.url, fields)
    return scan_rows(conf, key_range(query.host, query.start, query.stop), fields, query.limit)


def _get_statistics(call: ApiCall) -> CrawlStatistics:
    query: CrawlQuery = call.query
    with call.context.open_crawl_reader(query.crawl_id, query.configuration) as reader:
        return CrawlStatistics(table_stats=reader.table_stats(), overview=reader.overview())


def _query_log(call: ApiCall) -> list[JobEntry]:
    query: LogQuery = call.query
    with call.context.open_crawl_reader(query.crawl_id, query.configuration) as reader:
        return reader.jobs(limit=query.limit, before=query.before)


OPERATIONS: list[Operation] = [
    Operation("GET", "/health", Role.ANONYMOUS, "Health check", _get_health, HealthResponse),
    Operation(
        "GET",
        "/metrics",
        Role.READ,
        "Metrics for Prometheus",
        _get_metrics,
        str,
        media_type="text/plain",
        query_type=CrawlQuery,
        reads_store=True,
    ),
    Operation(
        "GET", f"{_PREFIX}/jobs", Role.READ, "Jobs, newest first", _list_jobs, list[JobProcess], query_type=JobsQuery
    ),
    Operation(
        "POST",
        f"{_PREFIX}/jobs",
        Role.RUN,
        "Start a job, or a crawl of several rounds",
        _start_job,
        JobProcess,
        AnyJobRequest,
        status=HTTPStatus.CREATED,
        modifies=True,
    ),
    Operation(
        "GET", f"{_PREFIX}/jobs/{{id}}", Role.READ, "A job with its log entries", _get_job, JobDetail, reads_store=True
    ),
    Operation(
        "DELETE",
        f"{_PREFIX}/jobs/{{id}}",
        Role.RUN,
        "Delete a job that has ended",
        _delete_job,
        DeleteResponse,
        modifies=True,
    ),
    Operation(
        "POST",
        f"{_PREFIX}/jobs/{{id}}/stop",
        Role.RUN,
        "Interrupt a job, as Ctrl-C does",
        _stop_job,
        JobProcess,
        modifies=True,
    ),
    Operation(
        "POST",
        f"{_PREFIX}/jobs/{{id}}/abort",
        Role.RUN,
        "Kill the processes of a job",
        _abort_job,
        JobProcess,
        modifies=True,
    ),
    Operation(
        "GET",
        f"{_PREFIX}/jobs/{{id}}/output",
        Role.READ,
        "Output of a job",
        _get_job_output,
        JobOutput,
        query_type=OutputQuery,
    ),
    Operation(
        "GET",
        f"{_PREFIX}/schedules",
        Role.READ,
        "Schedules",
        _list_schedules,
        list[StoredSchedule],
        query_type=ListQuery,
    ),
    Operation(
        "POST",
        f"{_PREFIX}/schedules",
        Role.RUN,
        "Store or replace a schedule",
        _store_schedule,
        StoredSchedule,
        NewSchedule,
        status=HTTPStatus.CREATED,
        modifies=True,
    ),
    Operation("GET", f"{_PREFIX}/schedules/{{id}}", Role.READ, "A schedule", _get_schedule, StoredSchedule),
    Operation(
        "DELETE",
        f"{_PREFIX}/schedules/{{id}}",
        Role.RUN,
        "Delete a schedule",
        _delete_schedule,
        DeleteResponse,
        modifies=True,
    ),
    Operation(
        "GET", f"{_PREFIX}/seeds", Role.READ, "Seed lists", _list_seed_lists, list[SeedList], query_type=ListQuery
    ),
    Operation(
        "POST",
        f"{_PREFIX}/seeds",
        Role.RUN,
        "Store a seed list",
        _store_seed_list,
        SeedList,
        NewSeedList,
        status=HTTPStatus.CREATED,
        modifies=True,
    ),
    Operation("GET", f"{_PREFIX}/seeds/{{id}}", Role.READ, "A seed list", _get_seed_list, SeedList),
    Operation(
        "DELETE",
        f"{_PREFIX}/seeds/{{id}}",
        Role.RUN,
        "Delete a seed list",
        _delete_seed_list,
        DeleteResponse,
        modifies=True,
    ),
    Operation(
        "GET",
        f"{_PREFIX}/configurations",
        Role.READ,
        "Configuration ids",
        _list_configurations,
        list[str],
        query_type=ListQuery,
    ),
    Operation(
        "POST",
        f"{_PREFIX}/configurations",
        Role.RUN,
        "Store a configuration",
        _store_configuration,
        StoredConfiguration,
        NewConfiguration,
        status=HTTPStatus.CREATED,
        modifies=True,
    ),
    Operation(
        "GET",
        f"{_PREFIX}/configurations/{{id}}",
        Role.READ,
        "A configuration, secrets masked",
        _get_configuration,
        StoredConfiguration,
    ),
    Operation(
        "DELETE",
        f"{_PREFIX}/configurations/{{id}}",
        Role.RUN,
        "Delete a stored configuration",
        _delete_configuration,
        DeleteResponse,
        modifies=True,
    ),
    Operation(
        "GET",
        f"{_PREFIX}/configurations/{{id}}/properties/{{name}}",
        Role.READ,
        "A property",
        _get_property,
        PropertyBody,
    ),
    Operation(
        "PUT",
        f"{_PREFIX}/configurations/{{id}}/properties/{{name}}",
        Role.RUN,
        "Set a property",
        _set_property,
        PropertyBody,
        PropertyBody,
        modifies=True,
    ),
    Operation(
        "GET",
        f"{_PREFIX}/batches",
        Role.READ,
        "Open batches",
        _list_batches,
        list[OpenBatch],
        query_type=BatchesQuery,
        reads_store=True,
    ),
    Operation(
        "GET",
        f"{_PREFIX}/rows",
        Role.READ,
        "Rows of the table",
        _query_rows,
        RowsResult,
        query_type=RowsQuery,
        reads_store=True,
    ),
    Operation(
        "GET",
        f"{_PREFIX}/statistics",
        Role.READ,
        "Table statistics and overview",
        _get_statistics,
        CrawlStatistics,
        query_type=CrawlQuery,
        reads_store=True,
    ),
    Operation(
        "GET",
        f"{_PREFIX}/search",
        Role.SEARCH,
        "Search",
        search,
        SearchResponse,
        query_type=SearchQuery,
        allows_cors=True,
    ),
    Operation(
        "POST",
        f"{_PREFIX}/clicks",
        Role.ANONYMOUS,  # the token of the results authorizes it
        "Report a click on a search result",
        report_click,
        body_type=ClickReport,
    ),
    Operation(
        "GET",
        f"{_PREFIX}/suggest",
        Role.SEARCH,
        "Query suggestions",
        suggest,
        SuggestResponse,
        query_type=SuggestQuery,
        allows_cors=True,
    ),
    Operation(
        "GET",
        f"{_PREFIX}/log",
        Role.READ,
        "Job log of a crawl",
        _query_log,
        list[JobEntry],
        query_type=LogQuery,
        reads_store=True,
    ),
]
