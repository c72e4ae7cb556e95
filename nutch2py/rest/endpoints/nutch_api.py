"""Paths and JSON formats of Nutch 2's REST server, over the same jobs, configurations and seed lists as ``/api/v1``."""

from __future__ import annotations

import secrets
import time
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from nutch2py.errors import InputError
from nutch2py.jobs.inject.seeds import find_seed_files
from nutch2py.rest.access.allowed_properties import check_allowed
from nutch2py.rest.access.tokens import Role
from nutch2py.rest.dispatch.operation import ApiCall, Operation
from nutch2py.rest.endpoints.row_queries import key_range, scan_rows, select_fields
from nutch2py.rest.http_error import not_found
from nutch2py.rest.job_control.job_processes import JobProcess, JobProcessState
from nutch2py.rest.job_control.job_requests import (
    AnyJobRequest,
    CrawlId,
    Identifier,
    PropertyName,
    PropertyValue,
    SeededJobRequest,
    SeedUrlString,
)
from nutch2py.rest.job_control.seed_lists import NewSeedList, SeedList
from nutch2py.support.clock import MS_PER_DAY
from nutch2py.url.keys import reverse_url

_NUTCH_STATES = {
    JobProcessState.RUNNING: "RUNNING",
    JobProcessState.STOPPING: "STOPPING",
    JobProcessState.KILLING: "KILLING",
    JobProcessState.FINISHED: "FINISHED",
    JobProcessState.FAILED: "FAILED",
    JobProcessState.STOPPED: "KILLED",
    JobProcessState.KILLED: "KILLED",
}
_PAGE_SIZE = 1000  # clients of Nutch 2 expect whole lists
_MAX_ARGS, _MAX_ARG_LENGTH = 50, 200
"""Arguments of a request that a job shows, and characters of their names and values."""
_JOB_TYPES_BY_CLASS = {
    "crawl.InjectorJob": "INJECT",
    "crawl.GeneratorJob": "GENERATE",
    "fetcher.FetcherJob": "FETCH",
    "parse.ParserJob": "PARSE",
    "crawl.DbUpdaterJob": "UPDATEDB",
    "indexer.IndexingJob": "INDEX",
    "crawl.WebTableReader": "READDB",
}
"""Job types by the class of Nutch 2 below ``org.apache.nutch.``; the type ``CLASS`` runs no other class."""
_JOB_TYPES = tuple(_JOB_TYPES_BY_CLASS.values())
_MAX_SEED_LINES = 10_000
_FOLDER_LIST_PREFIX = "folder-"
"""Start of the id of a seed list that is made of a folder, and deleted when its job has started."""


class JobInfo(Struct, rename="camel", kw_only=True, frozen=True):
    """A job in the format of Nutch 2."""

    id: str
    type: str
    conf_id: str
    args: dict[str, Any]
    result: dict[str, Any]
    state: str
    msg: str
    crawl_id: str


class NutchStatus(Struct, rename="camel", kw_only=True, frozen=True):
    """State of the server. ``start_date``: ms since 1970."""

    start_date: int
    configuration: list[str]
    jobs: list[JobInfo]
    running_jobs: list[JobInfo]
    active_conf_id: str = "default"


class JobConfig(Struct, rename="camel", kw_only=True, frozen=True):
    """A job to start. ``type``: INJECT, GENERATE, FETCH, PARSE, UPDATEDB, INDEX or READDB."""

    type: Annotated[str, Meta(max_length=20)]
    crawl_id: CrawlId | None = None
    conf_id: Identifier | None = None
    job_class_name: str | None = None
    args: dict[str, Any] | None = None


class NutchConfig(Struct, rename="camel", kw_only=True, frozen=True):
    """A configuration to store."""

    config_id: Identifier
    force: bool = False
    params: dict[PropertyName, PropertyValue] = field(default_factory=dict)


class SeedUrl(Struct, kw_only=True, frozen=True):
    """A seed."""

    url: SeedUrlString


class NutchSeedList(Struct, rename="camel", kw_only=True, frozen=True):
    """A seed list to store."""

    name: str | None = None
    seed_urls: Annotated[list[SeedUrl], Meta(max_length=10_000)] = field(default_factory=list)


class DbFilter(Struct, rename="camel", kw_only=True, frozen=True):
    """Selects rows by key range and batch. Keys are URLs unless ``isKeysReversed`` is set."""

    batch_id: str | None = None
    start_key: str | None = None
    end_key: str | None = None
    is_keys_reversed: bool = False
    fields: list[str] | None = None


class DbQueryResult(Struct, kw_only=True, frozen=True):
    """Rows, at most 1,000."""

    values: list[dict[str, Any]]


class PropertyForm(Struct, kw_only=True, frozen=True):
    """The value of a property."""

    value: PropertyValue


class CrawlIdQuery(Struct, rename="camel", kw_only=True, frozen=True):
    """Selects a crawl."""

    crawl_id: CrawlId | None = None


class NutchJobsQuery(CrawlIdQuery, rename="camel", kw_only=True, frozen=True):
    """Selects a page of the jobs of a crawl: at most ``limit``, older than the id ``before``."""

    before: Annotated[str, Meta(max_length=200)] = "~"
    limit: Annotated[int, Meta(ge=1, le=1000)] = _PAGE_SIZE


class ConfigsQuery(Struct, kw_only=True, frozen=True):
    """Selects a page of the configuration ids: at most ``limit`` after ``after``."""

    after: Annotated[str, Meta(max_length=200)] = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = _PAGE_SIZE


class StopQuery(Struct, kw_only=True, frozen=True):
    """``force``: stop the server although jobs are running; they continue."""

    force: bool = False


def _job_info(job: JobProcess) -> JobInfo:
    result: dict[str, object] = {} if job.exit_code is None else {"exitCode": job.exit_code}
    if job.job == "generate" and "-batchId" in job.command_args:
        result["generate.batch.id"] = job.command_args[job.command_args.index("-batchId") + 1]
    message = job.message or ("OK" if job.state in (JobProcessState.RUNNING, JobProcessState.FINISHED) else "")
    return JobInfo(id=job.id, type=job.job.upper(), conf_id=job.configuration, args=dict(job.nutch_args),
                   result=result, state=_NUTCH_STATES[job.state], msg=message, crawl_id=job.crawl_id)  # fmt: skip


def _get_status(call: ApiCall) -> NutchStatus:
    jobs = [_job_info(job) for job in islice(call.context.jobs.all(), _PAGE_SIZE)]
    configurations = call.context.configurations.page("", _PAGE_SIZE)
    return NutchStatus(start_date=call.context.start_time, configuration=configurations, jobs=jobs,
                       running_jobs=[job for job in jobs if job.state == "RUNNING"])  # fmt: skip


def _stop_server(call: ApiCall) -> str:
    if any(job.state.is_alive for job in call.context.jobs.all()) and not call.query.force:
        return "Can't stop now. There are jobs running. Try force option."
    call.context.stop_server()
    return "Stopping in 1 seconds."


def _list_configs(call: ApiCall) -> list[str]:
    query: ConfigsQuery = call.query
    return call.context.configurations.page(query.after, query.limit)


def _get_config(call: ApiCall) -> dict[str, str]:
    conf = call.context.configurations.effective(call.path_params["id"])
    return {name: conf.get_redacted(name) for name in sorted(conf)}


def _get_property(call: ApiCall) -> str:
    conf, name = call.context.configurations.effective(call.path_params["id"]), call.path_params["name"]
    if name not in conf:
        raise not_found(f"property {name}")
    return conf.get_redacted(name)


def _create_config(call: ApiCall) -> str:
    new: NutchConfig = call.body
    check_allowed(new.params, call.caller.role)
    call.context.configurations.store(new.config_id, new.params, new.force)
    return new.config_id


def _set_property(call: ApiCall) -> str:
    check_allowed({call.path_params["name"]: call.body.value}, call.caller.role)
    call.context.configurations.set_property(call.path_params["id"], call.path_params["name"], call.body.value)
    return ""


def _delete_config(call: ApiCall) -> None:
    call.context.configurations.delete(call.path_params["id"])


def _list_jobs(call: ApiCall) -> list[JobInfo]:
    query: NutchJobsQuery = call.query
    jobs = (job for job in call.context.jobs.all() if query.crawl_id in (None, job.crawl_id) and job.id < query.before)
    return [_job_info(job) for job in islice(jobs, query.limit)]


def _get_job(call: ApiCall) -> JobInfo:
    return _job_info(call.context.jobs.get(call.path_params["id"]))


def _stop_job(call: ApiCall) -> bool:
    return call.context.jobs.stop(call.path_params["id"]).state != JobProcessState.RUNNING


def _abort_job(call: ApiCall) -> bool:
    return call.context.jobs.abort(call.path_params["id"]).state == JobProcessState.KILLED


def _create_job(call: ApiCall) -> str:
    body: JobConfig = call.body
    if body.type == "CLASS":
        body = msgspec.structs.replace(body, type=_type_of_class(body.job_class_name or ""))
    if body.type not in _JOB_TYPES:
        raise InputError(f"unknown job type {body.type!r}: use {', '.join(_JOB_TYPES)}")
    values = {"job": body.type.lower(), "crawlId": body.crawl_id or "", "configuration": body.conf_id or "default"}
    request = msgspec.convert({**values, **_request_arguments(call, body)}, AnyJobRequest, strict=False)
    shown = islice((body.args or {}).items(), _MAX_ARGS)
    args = {name[:_MAX_ARG_LENGTH]: str(value)[:_MAX_ARG_LENGTH] for name, value in shown}
    try:
        return call.context.start_job(request, call.caller, nutch_args=args).id
    finally:
        if isinstance(request, SeededJobRequest) and str(request.seed_list).startswith(_FOLDER_LIST_PREFIX):
            call.context.seed_lists.delete(str(request.seed_list))  # the job has its own copy


def _type_of_class(name: str) -> str:
    """Return the job type that runs a class of Nutch 2; raise InputError for any other class."""
    found = _JOB_TYPES_BY_CLASS.get(name.removeprefix("org.apache.nutch."))
    if found is None:
        known = ", ".join(_JOB_TYPES_BY_CLASS)
        raise InputError(f"class {name!r:.100} cannot be run: use one of org.apache.nutch. with {known}")
    return found


def _request_arguments(call: ApiCall, body: JobConfig) -> dict[str, object]:
    """Return the arguments of a job by their names in ``/api/v1``."""
    args = {name: value for name, value in (body.args or {}).items() if value is not None}
    batch = args.get("batch", args.get("batchId"))
    match body.type:
        case "INJECT":
            return {"seedList": _seed_list_id(call, str(args.get("seedDir", "")))}
        case "GENERATE":
            new_batch_id = f"{int(time.time())}-{secrets.randbelow(1 << 31)}"
            days = (
                {"addDays": (_parse_number(args["curTime"]) - time.time() * 1000) / MS_PER_DAY}
                if "curTime" in args
                else {}
            )
            return {**_pick(args, "topN", "sitemap"), **days, "batchId": batch or new_batch_id,
                    "noFilter": args.get("filter") in (False, "false"),
                    "noNorm": args.get("normalize") in (False, "false")}  # fmt: skip
        case "FETCH":
            return {"batchId": batch or "-all",
                    **_pick(args, "threads", "numTasks", "resume", "sitemap", "stmDetect")}  # fmt: skip
        case "PARSE":
            return {"batchId": batch or "-all", **_pick(args, "resume", "force", "sitemap")}
        case "INDEX":
            return {"batchId": batch or "-all", **_pick(args, "force")}
        case "READDB":
            return _pick(args, "sort")
        case _:
            return {"batchId": batch or "-all"}


def _pick(args: dict[str, object], *names: str) -> dict[str, object]:
    return {name: args[name] for name in names if name in args}


def _parse_number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{value!r:.50} is not a number") from None


def _seed_list_id(call: ApiCall, path: str) -> str:
    """Return the id of the seed list whose path ``POST /seed/create`` returned, or of a new list of a folder's lines.

    Folders are read only within ``rest.seed.folder``.
    """
    if Path(path).parent == call.context.seed_lists.directory:
        return Path(path).name
    allowed = call.context.conf.get_trimmed("rest.seed.folder")
    folder = Path(path).resolve()
    if not path or not allowed or not folder.is_relative_to(Path(allowed).resolve()):
        raise InputError(
            "seedDir must be a path that POST /seed/create returned, or within rest.seed.folder: no other file is read"
        )
    lines: list[str] = []
    for file in find_seed_files(folder):
        if not file.resolve().is_relative_to(Path(allowed).resolve()):
            raise InputError(f"{file.name} leads out of rest.seed.folder: it is not read")
        with file.open(encoding="utf-8-sig", errors="replace") as source:
            lines += [line.rstrip("\n") for line in islice(source, _MAX_SEED_LINES + 1 - len(lines))]
        if len(lines) > _MAX_SEED_LINES:
            raise InputError(f"seedDir has more than {_MAX_SEED_LINES} lines: use the command inject")
    stored = SeedList(id=f"{_FOLDER_LIST_PREFIX}{secrets.token_hex(6)}", name="", urls=lines)
    call.context.seed_lists.put(stored.id, stored)
    return stored.id


def _create_seed_list(call: ApiCall) -> str:
    form: NutchSeedList = call.body
    stored = call.context.seed_lists.store(
        NewSeedList(name=form.name or "", urls=[each.url for each in form.seed_urls])
    )
    return str(call.context.seed_lists.directory / stored.id)


def _query_rows(call: ApiCall) -> DbQueryResult:
    body: DbFilter = call.body
    conf = call.context.existing_crawl_configuration(call.query.crawl_id or "", "default")
    start, stop = (_row_key(each, body.is_keys_reversed) for each in (body.start_key, body.end_key))
    fields = select_fields(body.fields or [])
    return DbQueryResult(values=scan_rows(conf, key_range("", start, stop), fields, 1000, body.batch_id or "").rows)


def _row_key(key: str | None, is_reversed: bool) -> str:
    if not key or is_reversed:
        return key or ""
    try:
        return reverse_url(key)
    except ValueError as error:
        raise InputError(f"{key!r:.100} is not a URL: {error}") from error


_TEXT_PLAIN = "text/plain"
OPERATIONS: list[Operation] = [
    Operation("GET", "/admin", Role.ADMIN, "The server and its jobs", _get_status, NutchStatus),
    Operation(
        "GET",
        "/admin/stop",
        Role.ADMIN,
        "Stop the server; jobs continue",
        _stop_server,
        str,
        query_type=StopQuery,
        modifies=True,
        media_type=_TEXT_PLAIN,
    ),
    Operation("GET", "/config", Role.READ, "Configuration ids", _list_configs, list[str], query_type=ConfigsQuery),
    Operation("GET", "/config/{id}", Role.READ, "A configuration, secrets masked", _get_config, dict[str, str]),
    Operation("GET", "/config/{id}/{name}", Role.READ, "A property", _get_property, str, media_type=_TEXT_PLAIN),
    Operation(
        "POST",
        "/config/{id}",
        Role.RUN,
        "Store a configuration",
        _create_config,
        str,
        NutchConfig,
        modifies=True,
        media_type=_TEXT_PLAIN,
    ),
    Operation(
        "PUT",
        "/config/{id}/{name}",
        Role.RUN,
        "Set a property",
        _set_property,
        str,
        PropertyForm,
        modifies=True,
        media_type=_TEXT_PLAIN,
        accepts_form=True,
    ),
    Operation("DELETE", "/config/{id}", Role.RUN, "Delete a stored configuration", _delete_config, modifies=True),
    Operation(
        "POST",
        "/db",
        Role.READ,
        "Rows of the table",
        _query_rows,
        DbQueryResult,
        DbFilter,
        query_type=CrawlIdQuery,
        reads_store=True,
    ),
    Operation("GET", "/job", Role.READ, "Jobs, newest first", _list_jobs, list[JobInfo], query_type=NutchJobsQuery),
    Operation(
        "POST",
        "/job/create",
        Role.RUN,
        "Start a job",
        _create_job,
        str,
        JobConfig,
        modifies=True,
        media_type=_TEXT_PLAIN,
    ),
    Operation("GET", "/job/{id}", Role.READ, "A job", _get_job, JobInfo, query_type=CrawlIdQuery),
    Operation(
        "GET", "/job/{id}/stop", Role.RUN, "Interrupt a job", _stop_job, bool, query_type=CrawlIdQuery, modifies=True
    ),
    Operation(
        "GET",
        "/job/{id}/abort",
        Role.RUN,
        "Kill the processes of a job",
        _abort_job,
        bool,
        query_type=CrawlIdQuery,
        modifies=True,
    ),
    Operation(
        "POST",
        "/seed/create",
        Role.RUN,
        "Store a seed list",
        _create_seed_list,
        str,
        NutchSeedList,
        modifies=True,
        media_type=_TEXT_PLAIN,
    ),
]
