"""Office: what the REST interface works with, in one place; Nutch 2's paths and our own are both made of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from http import HTTPStatus

from msgspec import UNSET

from nutch2py.conf.configuration import Configuration
from nutch2py.crawl_reader import CrawlReader
from nutch2py.errors import NutchError
from nutch2py.joblog.job_entry import JobEntry
from nutch2py.records.webpage import WebPage
from nutch2py.rest.access.allowed_properties import check_allowed, with_properties
from nutch2py.rest.access.audit_log import AuditLog
from nutch2py.rest.access.tokens import Caller, Role, TokenStore
from nutch2py.rest.http_error import HttpError, not_found
from nutch2py.rest.job_control.job_processes import JobProcess, JobProcessManager, JobSpec
from nutch2py.rest.job_control.job_requests import JobRequest, SeededJobRequest
from nutch2py.rest.job_control.schedules import Scheduler, ScheduleStore, StoredSchedule
from nutch2py.rest.job_control.seed_lists import SeedListStore
from nutch2py.rest.job_control.stored_configurations import StoredConfigurations
from nutch2py.rest.server_metrics import ServerMetrics
from nutch2py.rest.state_dir import state_dir
from nutch2py.search.search_backends import SearchBackend, open_search_backend
from nutch2py.support.reporting import warn
from nutch2py.table import open_store

_WARN_INTERVAL_SECONDS = 10.0  # seconds after a warning of tokens that cannot be read
_LOG_ENTRIES_SEARCHED = 200  # newest entries of a crawl's log among which those of a job are looked for


class RestContext:
    """Over the configuration of a server; ``is_local``: it is served on loopback alone."""

    def __init__(self, conf: Configuration, is_local: bool) -> None:
        folder = state_dir(conf)
        self.conf, self.is_local, self.state_dir = conf, is_local, folder
        self.tokens = TokenStore(conf)
        self._last_warning = float("-inf")
        self.configurations = StoredConfigurations(folder, conf)
        self.seed_lists = SeedListStore(folder)
        self.jobs = JobProcessManager(
            folder, conf.get_int("rest.jobs.running", 8), conf.get_int("rest.jobs.keep", 1000)
        )
        self.schedules = ScheduleStore(folder)
        self.scheduler = Scheduler(self.schedules, self.jobs, self._start_scheduled_job, self._report_missed_run)
        self.audit_log = AuditLog(folder / "audit.log", conf.get_int("rest.audit.max.bytes", 64 << 20))
        self.metrics = ServerMetrics()
        self.start_time = time.time_ns() // 1_000_000
        self.stop_server: Callable[[], None] = lambda: None

    @cached_property
    def search_backend(self) -> SearchBackend:
        """The index that applications search."""
        return open_search_backend(self.conf)

    def authenticate(self, authorization: str) -> Caller | None:
        """Return who asks; None when that is not known."""
        if self.tokens.path is not None:
            try:
                return self.tokens.find_caller(authorization)
            except NutchError as error:
                if time.monotonic() - self._last_warning > _WARN_INTERVAL_SECONDS:  # whoever asks must not fill a log
                    self._last_warning = time.monotonic()
                    warn(str(error))  # it names files of this machine, which are nobody's business who has no token
                told = "the server cannot read its tokens (its own messages say why)"
                raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, told, {"Retry-After": "10"}) from error
        if not self.is_local:
            told = "on another address than loopback this needs tokens: set rest.tokens.file (docs/rest.md)"
            raise HttpError(HTTPStatus.FORBIDDEN, told)
        return Caller("local", Role.ADMIN)

    def build_configuration(self, crawl_id: str, configuration: str = "default",
                properties: Mapping[str, str] | None = None) -> Configuration:  # fmt: skip
        """Return the configuration of a crawl."""
        conf = with_properties(self.configurations.effective(configuration), properties or {})
        if crawl_id:
            conf.set("storage.crawl.id", crawl_id)
        return conf

    def existing_crawl_configuration(self, crawl_id: str, configuration: str) -> Configuration:
        """Return the configuration of a crawl that is there; Refusal when there is none of this id."""
        conf = self.build_configuration(crawl_id, configuration)
        if not open_store(conf, WebPage).exists():
            raise not_found(f"crawl {crawl_id!r}: inject seeds first")
        return conf

    def open_crawl_reader(self, crawl_id: str, configuration: str) -> CrawlReader:
        """Return what reads a crawl that is there; it is closed by the caller."""
        return CrawlReader(self.existing_crawl_configuration(crawl_id, configuration))

    def start_job(self, request: JobRequest, caller: Caller, schedule: str = "", is_validated: bool = False,
              nutch_args: Mapping[str, str] | None = None) -> JobProcess:  # fmt: skip
        """Begin a job; ``is_validated``: it was judged when it was scheduled; ``nutch_args``: as Nutch 2 tells them."""
        if not is_validated:
            self.validate(request, caller)
        conf = self.build_configuration(request.crawl_id, request.configuration, request.properties)
        spec = JobSpec(id="", job=str(request.__struct_config__.tag), crawl_id=request.crawl_id,
                    configuration=request.configuration, command_args=request.command_args(), requested_by=caller.name,
                    schedule=schedule, nutch_args=dict(nutch_args or {}))  # fmt: skip
        return self.jobs.start(spec, conf, self._resolve_seeds(request))

    def _start_scheduled_job(self, request: JobRequest, by: str, schedule: str) -> JobProcess:
        child = self.start_job(request, Caller(by, Role.RUN), schedule, is_validated=True)
        self.audit_log.record(by, "", "SCHEDULE", schedule, int(HTTPStatus.CREATED), child.id)
        return child

    def _report_missed_run(self, schedule: StoredSchedule, why: str) -> None:
        self.audit_log.record(schedule.created_by, "", "SCHEDULE", schedule.id, 0, why)
        warn(f"schedule {schedule.id}: {why}")

    def validate(self, request: JobRequest, caller: Caller) -> None:
        """Raise an error of what a request may not ask for."""
        check_allowed(request.properties, caller.role)
        self.build_configuration(request.crawl_id, request.configuration, request.properties)
        self._resolve_seeds(request)

    def _resolve_seeds(self, request: JobRequest) -> list[str] | None:
        if not isinstance(request, SeededJobRequest):
            return None
        stored = [] if request.seed_list is UNSET else self.seed_lists.get(str(request.seed_list)).urls
        seeds = [*request.seeds, *stored]
        if not seeds:
            raise HttpError(HTTPStatus.BAD_REQUEST, "no seeds are given: name some in seeds, or a list in seedList")
        return seeds

    def job_log_entries(self, child: JobProcess) -> list[JobEntry]:
        """Return what the crawl's log has of a job, the oldest first: several jobs of a whole crawl."""
        if child.pid is None:
            return []
        entries: list[JobEntry] = []
        with suppress(NutchError), CrawlReader(self.build_configuration(child.crawl_id, child.configuration)) as reader:
            entries = reader.jobs(limit=_LOG_ENTRIES_SEARCHED)
        latest = child.finish_time or time.time_ns() // 1_000_000
        ours = [each for each in entries if each.pid == child.pid and child.start_time <= each.start_time <= latest]
        return sorted(ours, key=lambda each: each.id)
