"""Shared services of the REST API: jobs, schedules, configurations, tokens and the audit log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
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
from nutch2py.rest.http_error import HttpError
from nutch2py.rest.job_control.job_processes import DEFAULT_OUTPUT_BYTES, JobProcess, JobProcessManager, JobSpec
from nutch2py.rest.job_control.job_requests import JobRequest, SeededJobRequest
from nutch2py.rest.job_control.schedules import Scheduler, ScheduleStore, ScheduleTiming
from nutch2py.rest.job_control.seed_lists import SeedListStore
from nutch2py.rest.job_control.stored_configurations import StoredConfigurations
from nutch2py.rest.server_metrics import ServerMetrics
from nutch2py.rest.state_dir import StoreQuota, state_dir
from nutch2py.search.search_backends import SearcherManager, open_searcher_manager
from nutch2py.search.search_log.search_logger import SearchLogger
from nutch2py.search.search_worker.search_metrics import SearchMetrics
from nutch2py.support.reporting import warn
from nutch2py.support.retry import service_wait_seconds
from nutch2py.table import open_store

_WARN_INTERVAL_SECONDS = 10.0  # between warnings about an unreadable tokens file
_LOG_ENTRIES_SEARCHED = 200  # newest job log entries that are searched for those of a job


class RestContext:
    """Services over the configuration of a server. ``is_local``: the server listens on loopback only."""

    def __init__(self, conf: Configuration, is_local: bool) -> None:
        folder = state_dir(conf)
        self.conf, self.is_local, self.state_dir = conf, is_local, folder
        self.tokens = TokenStore(conf)
        self._last_warning = float("-inf")
        self.configurations = StoredConfigurations(folder, conf)
        self.seed_lists = SeedListStore(folder, StoreQuota.from_conf(conf))
        self.jobs = JobProcessManager(
            folder,
            conf.get_int("rest.jobs.running", 8),
            conf.get_int("rest.jobs.keep", 1000),
            conf.get_int("rest.jobs.bytes", 1 << 30),
            conf.get_int("rest.job.output.bytes", DEFAULT_OUTPUT_BYTES),
        )
        self.schedules = ScheduleStore(folder, StoreQuota.from_conf(conf))
        self.scheduler = Scheduler(self.schedules, self.jobs, self._start_scheduled_job, self._report_missed_run)
        self.audit_log = AuditLog(folder / "audit.log", conf.get_int("rest.audit.max.bytes", 64 << 20))
        self.search_metrics = SearchMetrics()
        self.metrics = ServerMetrics(self.search_metrics)
        self.search_logger = SearchLogger.from_conf(conf)
        self.start_time = time.time_ns() // 1_000_000
        self.stop_server: Callable[[], None] = lambda: None

    @cached_property
    def searchers(self) -> SearcherManager:
        """The searchers of the index, for the search page and the search API."""
        return open_searcher_manager(self.conf, self.search_metrics)

    def close_searchers(self) -> None:
        """Close the searchers if any request has opened them."""
        if "searchers" in self.__dict__:
            self.searchers.close()

    def authenticate(self, authorization: str) -> Caller | None:
        """Return the caller of a header ``Authorization``; None for a missing or unknown token."""
        if self.tokens.path is not None:
            try:
                return self.tokens.find_caller(authorization)
            except NutchError as error:
                if time.monotonic() - self._last_warning > _WARN_INTERVAL_SECONDS:  # clients must not fill the log
                    self._last_warning = time.monotonic()
                    warn(str(error))  # only the log names files of this machine
                message = "the server cannot read its tokens (the reason is in the server's log)"
                raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, message, {"Retry-After": "10"}) from error
        if not self.is_local:
            message = "access from other machines requires tokens: set rest.tokens.file (docs/rest.md)"
            raise HttpError(HTTPStatus.FORBIDDEN, message)
        return Caller("local", Role.ADMIN)

    def build_configuration(
        self, crawl_id: str, configuration: str = "default", properties: Mapping[str, str] | None = None
    ) -> Configuration:
        """Return a stored configuration with more properties and the id of a crawl."""
        conf = with_properties(self.configurations.effective(configuration), properties or {})
        if crawl_id:
            conf.set("storage.crawl.id", crawl_id)
        return conf

    def reading_configuration(self, crawl_id: str, configuration: str = "default") -> Configuration:
        """Return the configuration of a crawl for requests that read it: they wait a short time for its store."""
        conf = self.build_configuration(crawl_id, configuration)
        seconds = conf.get_float("serve.store.wait.seconds", 3.0)
        conf.set("service.wait.seconds", str(min(seconds, service_wait_seconds(conf))))
        for name, milliseconds in (("hbase.thrift.connect.timeout", seconds * 1000), ("hbase.thrift.timeout", 10_000)):
            conf.set(name, str(max(1, min(int(milliseconds), conf.get_int(name, 10_000)))))
        return conf

    def existing_crawl_configuration(self, crawl_id: str, configuration: str) -> Configuration:
        """Return the configuration for reading a crawl; raise HttpError when the crawl has no table."""
        conf = self.reading_configuration(crawl_id, configuration)
        if not open_store(conf, WebPage).exists():
            raise HttpError(HTTPStatus.NOT_FOUND, f"crawl {crawl_id!r} not found: start a crawl or inject seeds first")
        return conf

    def open_crawl_reader(self, crawl_id: str, configuration: str) -> CrawlReader:
        """Return a reader of an existing crawl. The caller closes it."""
        return CrawlReader.for_server(self.existing_crawl_configuration(crawl_id, configuration))

    def start_job(self, request: JobRequest, caller: Caller, nutch_args: Mapping[str, str] | None = None) -> JobProcess:
        """Validate a request and start its job. ``nutch_args``: the arguments of a request to Nutch 2's paths."""
        conf, seeds = self.validate(request, caller)
        return self._start(request, conf, seeds, caller.name, nutch_args=dict(nutch_args or {}))

    def _start_scheduled_job(self, request: JobRequest, created_by: str, schedule: str) -> JobProcess:
        # the role was checked when the schedule was stored
        job = self._start(request, *self._prepare(request), created_by, schedule)
        self.audit_log.record(created_by, "", "SCHEDULE", schedule, int(HTTPStatus.CREATED), job.id)
        return job

    def _report_missed_run(self, schedule: ScheduleTiming, reason: str) -> None:
        self.audit_log.record(schedule.created_by, "", "SCHEDULE", schedule.id, 0, reason)
        warn(f"schedule {schedule.id}: {reason}")

    def validate(self, request: JobRequest, caller: Caller) -> tuple[Configuration, list[str] | None]:
        """Return the configuration and the seeds of a request; raise an error when it is not allowed or invalid."""
        check_allowed(request.properties, caller.role)
        return self._prepare(request)

    def _prepare(self, request: JobRequest) -> tuple[Configuration, list[str] | None]:
        conf = self.build_configuration(request.crawl_id, request.configuration, request.properties)
        return conf, self._resolve_seeds(request)

    def _start(
        self,
        request: JobRequest,
        conf: Configuration,
        seeds: list[str] | None,
        requested_by: str,
        schedule: str = "",
        nutch_args: dict[str, str] | None = None,
    ) -> JobProcess:
        spec = JobSpec(
            id="",
            job=str(request.__struct_config__.tag),
            crawl_id=request.crawl_id,
            configuration=request.configuration,
            command_args=request.command_args(),
            requested_by=requested_by,
            schedule=schedule,
            nutch_args=nutch_args or {},
        )
        return self.jobs.start(spec, conf, seeds)

    def _resolve_seeds(self, request: JobRequest) -> list[str] | None:
        if not isinstance(request, SeededJobRequest):
            return None
        stored = [] if request.seed_list is UNSET else self.seed_lists.get(str(request.seed_list)).urls
        seeds = [*request.seeds, *stored]
        if not seeds:
            raise HttpError(HTTPStatus.BAD_REQUEST, "no seeds: set seeds, or the id of a list in seedList")
        return seeds

    def job_log_entries(self, job: JobProcess) -> list[JobEntry]:
        """Return the job log entries of a job, oldest first: several for the ``crawl`` command."""
        if job.pid is None:
            return []
        entries: list[JobEntry] = []
        with suppress(NutchError):
            conf = self.reading_configuration(job.crawl_id, job.configuration)
            with CrawlReader.for_server(conf) as reader:
                entries = reader.jobs(limit=_LOG_ENTRIES_SEARCHED)
        return find_entries_of_process(job, entries)


def find_entries_of_process(job: JobProcess, entries: Iterable[JobEntry]) -> list[JobEntry]:
    """Return the job log entries that the process of a job wrote, oldest first."""
    end = job.finish_time or time.time_ns() // 1_000_000
    own = [each for each in entries if each.pid == job.pid and job.start_time <= each.start_time <= end]
    return sorted(own, key=lambda each: each.id)
