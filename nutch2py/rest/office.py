"""Office: what the REST interface works with, in one place; Nutch 2's paths and our own are both made of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from http import HTTPStatus

from msgspec import UNSET

from nutch2py.conf import Configuration
from nutch2py.crawl_reader import CrawlReader
from nutch2py.errors import NutchError
from nutch2py.joblog.entry import JobEntry
from nutch2py.reporting import warn
from nutch2py.rest.audit import Audit
from nutch2py.rest.children import Child, Children, Spec
from nutch2py.rest.configurations import Configurations
from nutch2py.rest.kinds import Request, Seeded
from nutch2py.rest.metrics import Metrics
from nutch2py.rest.refusal import Refusal, not_found
from nutch2py.rest.schedules import Clock, Schedule, Schedules
from nutch2py.rest.seed_lists import SeedLists
from nutch2py.rest.settable import applied, check
from nutch2py.rest.state import state_folder
from nutch2py.rest.tokens import Caller, Role, Tokens
from nutch2py.search.search_backends import Backend, backend
from nutch2py.table import open_store
from nutch2py.webpage import WebPage

_SILENT = 10.0  # seconds after a warning of tokens that cannot be read
_LOGGED = 200  # newest entries of a crawl's log among which those of a job are looked for


class Office:
    """Over the configuration of a server; ``local``: it is served on loopback alone."""

    def __init__(self, conf: Configuration, local: bool) -> None:
        folder = state_folder(conf)
        self.conf, self.local, self.folder = conf, local, folder
        self.tokens = Tokens(conf)
        self._warned = float("-inf")
        self.configurations = Configurations(folder, conf)
        self.seeds = SeedLists(folder)
        self.children = Children(folder, conf.get_int("rest.jobs.running", 8), conf.get_int("rest.jobs.keep", 1000))
        self.schedules = Schedules(folder)
        self.clock = Clock(self.schedules, self.children, self._on_time, self._missed)
        self.audit = Audit(folder / "audit.log", conf.get_int("rest.audit.max.bytes", 64 << 20))
        self.metrics = Metrics()
        self.begun = time.time_ns() // 1_000_000
        self.stop_server: Callable[[], None] = lambda: None

    @cached_property
    def index(self) -> Backend:
        """The index that applications search."""
        return backend(self.conf)

    def caller(self, authorization: str) -> Caller | None:
        """Return who asks; None when that is not known."""
        if self.tokens.path is not None:
            try:
                return self.tokens.caller(authorization)
            except NutchError as error:
                if time.monotonic() - self._warned > _SILENT:  # whoever asks must not fill a log
                    self._warned = time.monotonic()
                    warn(str(error))  # it names files of this machine, which are nobody's business who has no token
                told = "the server cannot read its tokens (its own messages say why)"
                raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, told, {"Retry-After": "10"}) from error
        if not self.local:
            told = "on another address than loopback this needs tokens: set rest.tokens.file (docs/rest.md)"
            raise Refusal(HTTPStatus.FORBIDDEN, told)
        return Caller("local", Role.ADMIN)

    def conf_of(self, crawl_id: str, configuration: str = "default",
                properties: Mapping[str, str] | None = None) -> Configuration:  # fmt: skip
        """Return the configuration of a crawl."""
        conf = applied(self.configurations.effective(configuration), properties or {})
        if crawl_id:
            conf.set("storage.crawl.id", crawl_id)
        return conf

    def crawl_conf(self, crawl_id: str, configuration: str) -> Configuration:
        """Return the configuration of a crawl that is there; Refusal when there is none of this id."""
        conf = self.conf_of(crawl_id, configuration)
        if not open_store(conf, WebPage).exists():
            raise not_found(f"crawl {crawl_id!r}: inject seeds first")
        return conf

    def reader(self, crawl_id: str, configuration: str) -> CrawlReader:
        """Return what reads a crawl that is there; it is closed by the caller."""
        return CrawlReader(self.crawl_conf(crawl_id, configuration))

    def start(self, request: Request, caller: Caller, schedule: str = "", allowed: bool = False,
              args: Mapping[str, str] | None = None) -> Child:  # fmt: skip
        """Begin a job; ``allowed``: it was judged when it was scheduled; ``args``: as Nutch 2 tells them."""
        if not allowed:
            self.judge(request, caller)
        conf = self.conf_of(request.crawl_id, request.configuration, request.properties)
        spec = Spec(id="", job=str(request.__struct_config__.tag), crawl_id=request.crawl_id,
                    configuration=request.configuration, words=request.words(), by=caller.name,
                    schedule=schedule, args=dict(args or {}))  # fmt: skip
        return self.children.start(spec, conf, self._seeds(request))

    def _on_time(self, request: Request, by: str, schedule: str) -> Child:
        child = self.start(request, Caller(by, Role.RUN), schedule, allowed=True)
        self.audit.note(by, "", "SCHEDULE", schedule, int(HTTPStatus.CREATED), child.id)
        return child

    def _missed(self, schedule: Schedule, why: str) -> None:
        self.audit.note(schedule.by, "", "SCHEDULE", schedule.id, 0, why)
        warn(f"schedule {schedule.id}: {why}")

    def judge(self, request: Request, caller: Caller) -> None:
        """Raise an error of what a request may not ask for."""
        check(request.properties, caller.role)
        self.conf_of(request.crawl_id, request.configuration, request.properties)
        self._seeds(request)

    def _seeds(self, request: Request) -> list[str] | None:
        if not isinstance(request, Seeded):
            return None
        stored = [] if request.seed_list is UNSET else self.seeds.get(str(request.seed_list)).urls
        seeds = [*request.seeds, *stored]
        if not seeds:
            raise Refusal(HTTPStatus.BAD_REQUEST, "no seeds are given: name some in seeds, or a list in seedList")
        return seeds

    def logged(self, child: Child) -> list[JobEntry]:
        """Return what the crawl's log has of a job, the oldest first: several jobs of a whole crawl."""
        if child.pid is None:
            return []
        entries: list[JobEntry] = []
        with suppress(NutchError), CrawlReader(self.conf_of(child.crawl_id, child.configuration)) as reader:
            entries = reader.jobs(limit=_LOGGED)
        latest = child.ended or time.time_ns() // 1_000_000
        ours = [each for each in entries if each.pid == child.pid and child.begun <= each.begun <= latest]
        return sorted(ours, key=lambda each: each.id)
