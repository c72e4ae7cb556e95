"""The clean interface, under ``/api/v1``: what each of its operations does."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import islice

from msgspec import structs

from nutch2py.conf import Configuration
from nutch2py.errors import InputError
from nutch2py.joblog.entry import JobEntry
from nutch2py.rest.answers import (
    Batch,
    Deleted,
    Health,
    JobDetail,
    JobsAsked,
    LogAsked,
    NewConfiguration,
    OfCrawl,
    Output,
    OutputAsked,
    RowsAsked,
    Statistics,
    StoredConfiguration,
    Value,
)
from nutch2py.rest.children import Child
from nutch2py.rest.kinds import AnyRequest
from nutch2py.rest.operation import Call, Operation
from nutch2py.rest.refusal import not_found
from nutch2py.rest.rows import Rows, chosen, key_range, one_row, some_rows
from nutch2py.rest.schedules import NewSchedule, Schedule, following
from nutch2py.rest.searching import search, suggest
from nutch2py.rest.seed_lists import NewSeedList, SeedList
from nutch2py.rest.settable import check
from nutch2py.rest.tokens import Role
from nutch2py.search.interface import SearchAnswer, SearchAsked, SuggestAnswer, SuggestAsked
from nutch2py.secrets import shown_value
from nutch2py.version import __version__

_V1 = "/api/v1"


def _health(_: Call) -> Health:
    return Health(status="ok", version=__version__)


def _metrics(call: Call) -> str:
    return call.office.metrics.text(call.office.children.all())


def _jobs(call: Call) -> list[Child]:
    asked: JobsAsked = call.query
    found = (
        child
        for child in call.office.children.all()
        if asked.crawl_id in (None, child.crawl_id) and asked.state in (None, child.state) and child.id < asked.before
    )
    return list(islice(found, asked.limit))


def _begin(call: Call) -> Child:
    return call.office.start(call.body, call.caller)


def _job(call: Call) -> JobDetail:
    child = call.office.children.get(call.path["id"])
    given = {name: getattr(child, name) for name in child.__struct_fields__}
    return JobDetail(**given, log=call.office.logged(child))


def _stop(call: Call) -> Child:
    return call.office.children.stop(call.path["id"])


def _abort(call: Call) -> Child:
    return call.office.children.abort(call.path["id"])


def _forget(call: Call) -> Deleted:
    call.office.children.delete(call.path["id"])
    return Deleted(id=call.path["id"])


def _output(call: Call) -> Output:
    asked: OutputAsked = call.query
    alive = call.office.children.get(call.path["id"]).state.alive  # before it is read: nothing is missed
    data, size = call.office.children.output(call.path["id"], asked.offset, asked.limit)
    behind = min(asked.offset, size) + len(data)
    return Output(text=data.decode("utf-8", "replace"), next=behind, more=alive or behind < size)


def _seed_lists(call: Call) -> list[SeedList]:
    return call.office.seeds.all()


def _put_seeds(call: Call) -> SeedList:
    return call.office.seeds.store(call.body)


def _seed_list(call: Call) -> SeedList:
    return call.office.seeds.get(call.path["id"])


def _delete_seeds(call: Call) -> Deleted:
    call.office.seeds.delete(call.path["id"])
    return Deleted(id=call.path["id"])


def _configurations(call: Call) -> list[str]:
    return call.office.configurations.ids()


def _configuration(call: Call) -> StoredConfiguration:
    return shown(call, call.path["id"])


def shown(call: Call, conf_id: str) -> StoredConfiguration:
    """Return a configuration with its secrets masked."""
    conf: Configuration = call.office.configurations.effective(conf_id)
    own = sorted(call.office.configurations.properties(conf_id))
    return StoredConfiguration(id=conf_id, own=own, properties={name: conf.shown(name) for name in sorted(conf)})


def _store(call: Call) -> StoredConfiguration:
    new: NewConfiguration = call.body
    check(new.properties, call.caller.role)
    call.office.configurations.create(new.id, new.properties, new.force)
    return shown(call, new.id)


def _delete_configuration(call: Call) -> Deleted:
    call.office.configurations.delete(call.path["id"])
    return Deleted(id=call.path["id"])


def _property(call: Call) -> Value:
    conf, name = call.office.configurations.effective(call.path["id"]), call.path["name"]
    if name not in conf:
        raise not_found(f"property {name}")
    return Value(conf.shown(name))


def _set_property(call: Call) -> Value:
    value: Value = call.body
    check({call.path["name"]: value.value}, call.caller.role)
    call.office.configurations.change(call.path["id"], call.path["name"], value.value)
    return _property(call)


def _schedules(call: Call) -> list[Schedule]:
    return [_timed(each) for each in call.office.schedules.all()]


def _timed(schedule: Schedule) -> Schedule:
    """Return a schedule with the time when it begins next, and the secrets among its properties masked."""
    due = None
    with suppress(InputError):  # its file was changed by hand
        due = following(schedule.cron, datetime.now(UTC)) if schedule.enabled else None
    shown = {name: shown_value(name, value) for name, value in schedule.job.properties.items()}
    job = structs.replace(schedule.job, properties=shown)
    return structs.replace(schedule, job=job, next=None if due is None else int(due.timestamp() * 1000))


def _put_schedule(call: Call) -> Schedule:
    new: NewSchedule = call.body
    call.office.judge(new.job, call.caller)
    return _timed(call.office.schedules.store(new, call.caller.name))


def _schedule(call: Call) -> Schedule:
    return _timed(call.office.schedules.get(call.path["id"]))


def _delete_schedule(call: Call) -> Deleted:
    call.office.schedules.delete(call.path["id"])
    return Deleted(id=call.path["id"])


def _batches(call: Call) -> list[Batch]:
    asked: OfCrawl = call.query
    with call.office.reader(asked.crawl_id, asked.configuration) as reader:
        return [
            Batch(id=each.batch_id, state=each.state, time=each.time, count=each.count, done=each.done,
                  at_work=[*each.at_work])
            for each in reader.batches()
        ]  # fmt: skip


def _rows(call: Call) -> Rows:
    asked: RowsAsked = call.query
    conf = call.office.crawl_conf(asked.crawl_id, asked.configuration)
    fields = chosen(asked.fields.split(","))
    if asked.url:
        return one_row(conf, asked.url, fields)
    return some_rows(conf, key_range(asked.host, asked.start, asked.stop), fields, asked.limit)


def _statistics(call: Call) -> Statistics:
    asked: OfCrawl = call.query
    with call.office.reader(asked.crawl_id, asked.configuration) as reader:
        return Statistics(figures=reader.figures(), overview=reader.overview())


def _log(call: Call) -> list[JobEntry]:
    asked: LogAsked = call.query
    with call.office.reader(asked.crawl_id, asked.configuration) as reader:
        return reader.jobs(limit=asked.limit, before=asked.before)


OPERATIONS: list[Operation] = [
    Operation("GET", "/health", Role.NOBODY, "Tell that the server answers", _health, Health),
    Operation("GET", "/metrics", Role.READ, "Counts for Prometheus", _metrics, str, media="text/plain"),
    Operation("GET", f"{_V1}/jobs", Role.READ, "Jobs, the newest first", _jobs, list[Child], query=JobsAsked),
    Operation("POST", f"{_V1}/jobs", Role.RUN, "Begin a job, or a whole crawl", _begin, Child, AnyRequest,
              status=HTTPStatus.CREATED, changes=True),
    Operation("GET", f"{_V1}/jobs/{{id}}", Role.READ, "A job, and how far it is", _job, JobDetail),
    Operation("DELETE", f"{_V1}/jobs/{{id}}", Role.RUN, "Forget a job that has ended", _forget, Deleted, changes=True),
    Operation("POST", f"{_V1}/jobs/{{id}}/stop", Role.RUN, "Interrupt a job, as Ctrl-C does", _stop, Child,
              changes=True),
    Operation("POST", f"{_V1}/jobs/{{id}}/abort", Role.RUN, "Kill the processes of a job", _abort, Child, changes=True),
    Operation("GET", f"{_V1}/jobs/{{id}}/output", Role.READ, "What a job has printed", _output, Output,
              query=OutputAsked),
    Operation("GET", f"{_V1}/schedules", Role.READ, "Schedules", _schedules, list[Schedule]),
    Operation("POST", f"{_V1}/schedules", Role.RUN, "Store a schedule, or replace one", _put_schedule, Schedule,
              NewSchedule, status=HTTPStatus.CREATED, changes=True),
    Operation("GET", f"{_V1}/schedules/{{id}}", Role.READ, "A schedule", _schedule, Schedule),
    Operation("DELETE", f"{_V1}/schedules/{{id}}", Role.RUN, "Delete a schedule", _delete_schedule, Deleted,
              changes=True),
    Operation("GET", f"{_V1}/seeds", Role.READ, "Lists of seeds", _seed_lists, list[SeedList]),
    Operation("POST", f"{_V1}/seeds", Role.RUN, "Store a list of seeds", _put_seeds, SeedList, NewSeedList,
              status=HTTPStatus.CREATED, changes=True),
    Operation("GET", f"{_V1}/seeds/{{id}}", Role.READ, "A list of seeds", _seed_list, SeedList),
    Operation("DELETE", f"{_V1}/seeds/{{id}}", Role.RUN, "Delete a list of seeds", _delete_seeds, Deleted,
              changes=True),
    Operation("GET", f"{_V1}/configurations", Role.READ, "Ids of configurations", _configurations, list[str]),
    Operation("POST", f"{_V1}/configurations", Role.RUN, "Store a configuration", _store, StoredConfiguration,
              NewConfiguration, status=HTTPStatus.CREATED, changes=True),
    Operation("GET", f"{_V1}/configurations/{{id}}", Role.READ, "A configuration, secrets masked", _configuration,
              StoredConfiguration),
    Operation("DELETE", f"{_V1}/configurations/{{id}}", Role.RUN, "Delete a stored configuration",
              _delete_configuration, Deleted, changes=True),
    Operation("GET", f"{_V1}/configurations/{{id}}/properties/{{name}}", Role.READ, "A property", _property, Value),
    Operation("PUT", f"{_V1}/configurations/{{id}}/properties/{{name}}", Role.RUN, "Set a property", _set_property,
              Value, Value, changes=True),
    Operation("GET", f"{_V1}/batches", Role.READ, "Open batches", _batches, list[Batch], query=OfCrawl),
    Operation("GET", f"{_V1}/rows", Role.READ, "Rows of the table", _rows, Rows, query=RowsAsked),
    Operation("GET", f"{_V1}/statistics", Role.READ, "Figures of the table, and an overview", _statistics, Statistics,
              query=OfCrawl),
    Operation("GET", f"{_V1}/search", Role.SEARCH, "Pages that a query finds", search, SearchAnswer, query=SearchAsked,
              shared=True),
    Operation("GET", f"{_V1}/suggest", Role.SEARCH, "What may be meant by the beginning of a query", suggest,
              SuggestAnswer, query=SuggestAsked, shared=True),
    Operation("GET", f"{_V1}/log", Role.READ, "The job log of a crawl", _log, list[JobEntry], query=LogAsked),
]  # fmt: skip
