"""What the control room does, as the REST interface would: begin a crawl, stop a job. Forms of HTML, no script."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from nutch2py.control_room.page_responses import TemplatePage, render_error_page, render_page
from nutch2py.errors import InputError, NutchError
from nutch2py.rest.access.tokens import Caller, Role
from nutch2py.rest.dispatch.authorization import Authorizer
from nutch2py.rest.http_error import HttpError, storage_error
from nutch2py.rest.job_control.job_requests import CrawlRequest

_NUMBER_FIELDS = ("depth", "pages", "minutes")
_MAX_FORM_FIELDS = 20  # of a form
FormData = dict[str, str]


def action_routes(gatekeeper: Authorizer) -> list[BaseRoute]:
    """Return the paths; who uses them needs the role ``run``, and no page of another site can."""
    return [
        Route("/crawl/new", partial(_show_form, gatekeeper), methods=["GET"]),
        Route("/crawl/new", partial(_run_action, gatekeeper, partial(_start_crawl, gatekeeper)), methods=["POST"]),
        Route("/crawl/stop", partial(_run_action, gatekeeper, partial(_stop_job, gatekeeper)), methods=["POST"]),
    ]


async def _show_form(gatekeeper: Authorizer, request: Request) -> Response:
    try:
        gatekeeper.authorize(request, Role.RUN, modifies=False)
    except HttpError as error:
        return render_error_page("/crawl/new", error)
    return render_page("/crawl/new", _form_page({}))


def _form_page(given: FormData, why: str = "") -> TemplatePage:
    known = {name: given.get(name, "") for name in ("seeds", *_NUMBER_FIELDS)}
    return TemplatePage("new.html", "New crawl", {"given": known | {"stay": given.get("stay", "host")}, "why": why})


async def _run_action(gatekeeper: Authorizer, deed: Callable[[FormData, Caller], str], request: Request) -> Response:
    """Do what a form asks for, write it down, and lead to the first page; or say why it was not done."""
    path, form, who = request.url.path, {}, ""
    try:
        caller = gatekeeper.authorize(request, Role.RUN, modifies=True)
        who = caller.name
        text = (await gatekeeper.read_body(request)).decode("utf-8", "replace")
        try:
            form = dict(parse_qsl(text, max_num_fields=_MAX_FORM_FIELDS))
        except ValueError:
            raise InputError(f"a form has at most {_MAX_FORM_FIELDS} fields") from None
        what = await gatekeeper.thread_limit.run(deed, form, caller)
        made: Response = RedirectResponse("/crawl", HTTPStatus.SEE_OTHER)
    except (NutchError, msgspec.ValidationError, OSError) as error:
        known = storage_error(error) if isinstance(error, OSError) else error
        what = str(known)
        if isinstance(known, HttpError):
            made = render_error_page(path, known)
        elif path == "/crawl/new":
            made = render_page(path, _form_page(form, what), HTTPStatus.BAD_REQUEST)
        else:
            made = render_page(path, TemplatePage("message.html", "Not done", {"text": what}), HTTPStatus.BAD_REQUEST)
    address = request.client.host if request.client else ""
    await gatekeeper.thread_limit.run(
        gatekeeper.context.audit_log.record, who, address, "POST", path, made.status_code, what
    )
    return made


def _start_crawl(gatekeeper: Authorizer, form: FormData, caller: Caller) -> str:
    """Begin a whole crawl in the crawl that the room shows; return the id of the job."""
    office = gatekeeper.context
    seeds = form.get("seeds", "").split()
    if not seeds:
        raise InputError("name at least one URL where it begins")
    wanted: dict[str, Any] = {"job": "crawl", "seeds": seeds, "stay": form.get("stay", "host")}
    wanted["crawlId"] = office.conf.get_trimmed("storage.crawl.id")
    wanted |= {name: form[name] for name in _NUMBER_FIELDS if form.get(name)}
    return office.start_job(msgspec.convert(wanted, CrawlRequest, strict=False), caller).id


def _stop_job(gatekeeper: Authorizer, form: FormData, _: Caller) -> str:
    """Interrupt a job as Ctrl-C does; return its id."""
    return gatekeeper.context.jobs.stop(form.get("id", "")).id
