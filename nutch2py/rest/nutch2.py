"""The paths of Nutch 2's server, with its JSON forms, on the same jobs, configurations and seeds as our own."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from nutch2py.errors import InputError
from nutch2py.rest.children import Child, ChildState
from nutch2py.rest.kinds import AnyRequest, CrawlId, Name, PropertyName, PropertyValue, Url
from nutch2py.rest.operation import Call, Operation
from nutch2py.rest.refusal import not_found
from nutch2py.rest.rows import chosen, key_range, some_rows
from nutch2py.rest.seed_lists import NewSeedList
from nutch2py.rest.settable import check
from nutch2py.rest.tokens import Role
from nutch2py.url.keys import reverse_url

_DAY_MS = 86_400_000
_STATES = {
    ChildState.RUNNING: "RUNNING",
    ChildState.STOPPING: "STOPPING",
    ChildState.KILLING: "KILLING",
    ChildState.FINISHED: "FINISHED",
    ChildState.FAILED: "FAILED",
    ChildState.STOPPED: "KILLED",
    ChildState.KILLED: "KILLED",
}
_TYPES = ("INJECT", "GENERATE", "FETCH", "PARSE", "UPDATEDB", "INDEX", "READDB")


class JobInfo(Struct, rename="camel", kw_only=True, frozen=True):
    """A job, as Nutch 2 tells it."""

    id: str
    type: str
    conf_id: str
    args: dict[str, Any]
    result: dict[str, Any]
    state: str
    msg: str
    crawl_id: str


class NutchStatus(Struct, rename="camel", kw_only=True, frozen=True):
    """The server; ``start_date``: ms since 1970."""

    start_date: int
    configuration: list[str]
    jobs: list[JobInfo]
    running_jobs: list[JobInfo]
    active_conf_id: str = "default"


class JobConfig(Struct, rename="camel", kw_only=True, frozen=True):
    """A job to be begun. ``type``: INJECT, GENERATE, FETCH, PARSE, UPDATEDB, INDEX or READDB."""

    type: Annotated[str, Meta(max_length=20)]
    crawl_id: CrawlId | None = None
    conf_id: Name | None = None
    job_class_name: str | None = None
    args: dict[str, Any] | None = None


class NutchConfig(Struct, rename="camel", kw_only=True, frozen=True):
    """A configuration to be stored."""

    config_id: Name
    force: bool = False
    params: dict[PropertyName, PropertyValue] = field(default_factory=dict)


class SeedUrl(Struct, kw_only=True, frozen=True):
    """A seed."""

    url: Url


class SeedForm(Struct, rename="camel", kw_only=True, frozen=True):
    """Seeds to be stored."""

    name: str | None = None
    seed_urls: Annotated[list[SeedUrl], Meta(max_length=10_000)] = field(default_factory=list)


class DbFilter(Struct, rename="camel", kw_only=True, frozen=True):
    """Which rows: from a key up to another, URLs unless ``isKeysReversed``; of a batch."""

    batch_id: str | None = None
    start_key: str | None = None
    end_key: str | None = None
    is_keys_reversed: bool = False
    fields: list[str] | None = None


class DbQueryResult(Struct, kw_only=True, frozen=True):
    """Rows, at most 1,000."""

    values: list[dict[str, Any]]


class FormValue(Struct, kw_only=True, frozen=True):
    """The value of a property."""

    value: PropertyValue


class OfCrawlId(Struct, rename="camel", kw_only=True, frozen=True):
    """Which crawl."""

    crawl_id: CrawlId | None = None


class Force(Struct, kw_only=True, frozen=True):
    """Whether to stop although jobs run; they go on."""

    force: bool = False


def _info(child: Child) -> JobInfo:
    result: dict[str, Any] = {} if child.exit_code is None else {"exitCode": child.exit_code}
    if child.job == "generate" and "-batchId" in child.words:
        result["generate.batch.id"] = child.words[child.words.index("-batchId") + 1]
    message = child.message or ("OK" if child.state in (ChildState.RUNNING, ChildState.FINISHED) else "")
    return JobInfo(id=child.id, type=child.job.upper(), conf_id=child.configuration, args=dict(child.args),
                   result=result, state=_STATES[child.state], msg=message, crawl_id=child.crawl_id)  # fmt: skip


def _status(call: Call) -> NutchStatus:
    jobs = [_info(child) for child in call.office.children.all()]
    return NutchStatus(start_date=call.office.begun, configuration=call.office.configurations.ids(), jobs=jobs,
                       running_jobs=[job for job in jobs if job.state == "RUNNING"])  # fmt: skip


def _stop_server(call: Call) -> str:
    if any(child.state.alive for child in call.office.children.all()) and not call.query.force:
        return "Can't stop now. There are jobs running. Try force option."
    call.office.stop_server()
    return "Stopping in 1 seconds."


def _configs(call: Call) -> list[str]:
    return call.office.configurations.ids()


def _config(call: Call) -> dict[str, str]:
    conf = call.office.configurations.effective(call.path["id"])
    return {name: conf.shown(name) for name in sorted(conf)}


def _property(call: Call) -> str:
    conf, name = call.office.configurations.effective(call.path["id"]), call.path["name"]
    if name not in conf:
        raise not_found(f"property {name}")
    return conf.shown(name)


def _create_config(call: Call) -> str:
    new: NutchConfig = call.body
    check(new.params, call.caller.role)
    call.office.configurations.create(new.config_id, new.params, new.force)
    return new.config_id


def _set_property(call: Call) -> str:
    check({call.path["name"]: call.body.value}, call.caller.role)
    call.office.configurations.change(call.path["id"], call.path["name"], call.body.value)
    return ""


def _delete_config(call: Call) -> None:
    call.office.configurations.delete(call.path["id"])


def _jobs(call: Call) -> list[JobInfo]:
    wanted = call.query.crawl_id
    return [_info(child) for child in call.office.children.all() if wanted in (None, child.crawl_id)]


def _job(call: Call) -> JobInfo:
    return _info(call.office.children.get(call.path["id"]))


def _stop(call: Call) -> bool:
    return call.office.children.stop(call.path["id"]).state != ChildState.RUNNING


def _abort(call: Call) -> bool:
    return call.office.children.abort(call.path["id"]).state == ChildState.KILLED


def _create_job(call: Call) -> str:
    asked: JobConfig = call.body
    if asked.type not in _TYPES:
        raise InputError(f"{asked.type!r} is no type of job here: {', '.join(_TYPES)}")
    given = {"job": asked.type.lower(), "crawlId": asked.crawl_id or "", "configuration": asked.conf_id or "default"}
    request = msgspec.convert({**given, **_arguments(call, asked)}, AnyRequest, strict=False)
    args = {name: str(value)[:200] for name, value in (asked.args or {}).items()}
    return call.office.start(request, call.caller, args=args).id


def _arguments(call: Call, asked: JobConfig) -> dict[str, Any]:
    """Return the arguments of a job as our own requests name them."""
    args = {name: value for name, value in (asked.args or {}).items() if value is not None}
    batch = args.get("batch", args.get("batchId"))
    match asked.type:
        case "INJECT":
            return {"seedList": _seed_list(call, str(args.get("seedDir", "")))}
        case "GENERATE":
            made = f"{int(time.time())}-{secrets.randbelow(1 << 31)}"
            days = {"addDays": (_number(args["curTime"]) - time.time() * 1000) / _DAY_MS} if "curTime" in args else {}
            return {**_some(args, "topN", "sitemap"), **days, "batchId": batch or made,
                    "noFilter": args.get("filter") in (False, "false"),
                    "noNorm": args.get("normalize") in (False, "false")}  # fmt: skip
        case "FETCH":
            return {"batchId": batch or "-all",
                    **_some(args, "threads", "numTasks", "resume", "sitemap", "stmDetect")}  # fmt: skip
        case "PARSE":
            return {"batchId": batch or "-all", **_some(args, "resume", "force", "sitemap")}
        case "READDB":
            return _some(args, "sort")
        case _:
            return {"batchId": batch or "-all"}


def _some(args: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: args[name] for name in names if name in args}


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{value!r:.50} is no number") from None


def _seed_list(call: Call, path: str) -> str:
    """Return the list of seeds whose path ``POST /seed/create`` has answered."""
    if Path(path).parent != call.office.seeds.folder:
        raise InputError("seedDir is to be what POST /seed/create has answered: no other file is read")
    return Path(path).name


def _create_seeds(call: Call) -> str:
    form: SeedForm = call.body
    stored = call.office.seeds.store(NewSeedList(name=form.name or "", urls=[each.url for each in form.seed_urls]))
    return str(call.office.seeds.folder / stored.id)


def _db(call: Call) -> DbQueryResult:
    asked: DbFilter = call.body
    conf = call.office.crawl_conf(call.query.crawl_id or "", "default")
    start, stop = (_key(each, asked.is_keys_reversed) for each in (asked.start_key, asked.end_key))
    fields = chosen(asked.fields or [])
    return DbQueryResult(values=some_rows(conf, key_range("", start, stop), fields, 1000, asked.batch_id or "").rows)


def _key(key: str | None, reversed_already: bool) -> str:
    if not key or reversed_already:
        return key or ""
    try:
        return reverse_url(key)
    except ValueError as error:
        raise InputError(f"{key!r:.100} is not a URL: {error}") from error


_TEXT = "text/plain"
OPERATIONS: list[Operation] = [
    Operation("GET", "/admin", Role.ADMIN, "The server and its jobs", _status, NutchStatus),
    Operation("GET", "/admin/stop", Role.ADMIN, "Stop the server; jobs go on", _stop_server, str, query=Force,
              changes=True, media=_TEXT),
    Operation("GET", "/config", Role.READ, "Ids of configurations", _configs, list[str]),
    Operation("GET", "/config/{id}", Role.READ, "A configuration, secrets masked", _config, dict[str, str]),
    Operation("GET", "/config/{id}/{name}", Role.READ, "A property", _property, str, media=_TEXT),
    Operation("POST", "/config/{id}", Role.RUN, "Store a configuration", _create_config, str, NutchConfig,
              changes=True, media=_TEXT),
    Operation("PUT", "/config/{id}/{name}", Role.RUN, "Set a property", _set_property, str, FormValue, changes=True,
              media=_TEXT, form=True),
    Operation("DELETE", "/config/{id}", Role.RUN, "Delete a stored configuration", _delete_config, changes=True),
    Operation("POST", "/db", Role.READ, "Rows of the table", _db, DbQueryResult, DbFilter, query=OfCrawlId),
    Operation("GET", "/job", Role.READ, "Jobs, the newest first", _jobs, list[JobInfo], query=OfCrawlId),
    Operation("POST", "/job/create", Role.RUN, "Begin a job", _create_job, str, JobConfig, changes=True, media=_TEXT),
    Operation("GET", "/job/{id}", Role.READ, "A job", _job, JobInfo, query=OfCrawlId),
    Operation("GET", "/job/{id}/stop", Role.RUN, "Interrupt a job", _stop, bool, query=OfCrawlId, changes=True),
    Operation("GET", "/job/{id}/abort", Role.RUN, "Kill the processes of a job", _abort, bool, query=OfCrawlId,
              changes=True),
    Operation("POST", "/seed/create", Role.RUN, "Store seeds", _create_seeds, str, SeedForm, changes=True,
              media=_TEXT),
]  # fmt: skip
