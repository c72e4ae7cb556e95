"""HTML form handlers of the control room: start a crawl, stop a job."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from nutch2py.control_room.page_responses import TemplatePage, render_error_page, render_page
from nutch2py.errors import InputError, NutchError
from nutch2py.rest.access.form_tokens import FORM_FIELD
from nutch2py.rest.access.tokens import Caller, Role
from nutch2py.rest.dispatch.authorization import Authorizer
from nutch2py.rest.dispatch.request_body import read_body
from nutch2py.rest.http_error import HttpError, storage_error
from nutch2py.rest.job_control.job_requests import CrawlRequest

_NUMBER_FIELDS = ("depth", "pages", "minutes")
_MAX_FORM_FIELDS = 20
FormData = dict[str, str]


def action_routes(authorizer: Authorizer) -> list[BaseRoute]:
    """Return the routes. They require the role ``run`` and proof of the request's origin."""
    return [
        Route("/crawl/new", partial(_show_form, authorizer), methods=["GET"]),
        Route("/crawl/new", partial(_run_action, authorizer, partial(_start_crawl, authorizer)), methods=["POST"]),
        Route("/crawl/stop", partial(_run_action, authorizer, partial(_stop_job, authorizer)), methods=["POST"]),
    ]


async def _show_form(authorizer: Authorizer, request: Request) -> Response:
    try:
        authorizer.authorize(request, Role.RUN, modifies=False)
    except HttpError as error:
        return render_error_page("/crawl/new", error)
    return render_page("/crawl/new", _form_page({}), form_token=authorizer.form_tokens.create(request))


def _form_page(form: FormData, error: str = "") -> TemplatePage:
    values = {name: form.get(name, "") for name in ("seeds", *_NUMBER_FIELDS)} | {"stay": form.get("stay", "host")}
    return TemplatePage("new.html", "New crawl", {"form": values, "error": error})


async def _run_action(authorizer: Authorizer, action: Callable[[FormData, Caller], str], request: Request) -> Response:
    """Run an action, record it in the audit log and redirect to the first page; on error show the message."""
    path, form, caller_name = request.url.path, {}, ""
    try:
        caller = authorizer.authorize(request, Role.RUN, modifies=False)  # the form token is in the body
        caller_name = caller.name
        text = (await read_body(request, authorizer.context.conf)).decode("utf-8", "replace")
        try:
            form = dict(parse_qsl(text, max_num_fields=_MAX_FORM_FIELDS))
        except ValueError:
            raise InputError(f"a form has at most {_MAX_FORM_FIELDS} fields") from None
        authorizer.check_change(request, form.get(FORM_FIELD, ""))
        detail = await authorizer.thread_limit.run(action, form, caller)
        response: Response = RedirectResponse("/crawl", HTTPStatus.SEE_OTHER)
    except (NutchError, msgspec.ValidationError, OSError) as error:
        reported = storage_error(error) if isinstance(error, OSError) else error
        detail = str(reported)
        if isinstance(reported, HttpError):
            response = render_error_page(path, reported)
        elif path == "/crawl/new":
            token = authorizer.form_tokens.create(request)
            response = render_page(path, _form_page(form, detail), HTTPStatus.BAD_REQUEST, form_token=token)
        else:
            page = TemplatePage("message.html", "Failed", {"message": detail})
            response = render_page(path, page, HTTPStatus.BAD_REQUEST)
    address = request.client.host if request.client else ""
    await authorizer.thread_limit.run(
        authorizer.context.audit_log.record, caller_name, address, "POST", path, response.status_code, detail
    )
    return response


def _start_crawl(authorizer: Authorizer, form: FormData, caller: Caller) -> str:
    """Start the ``crawl`` command on the crawl that the control room shows; return the job id."""
    context = authorizer.context
    seeds = form.get("seeds", "").split()
    if not seeds:
        raise InputError("no seeds: enter at least one URL")
    values: dict[str, object] = {"job": "crawl", "seeds": seeds, "stay": form.get("stay", "host")}
    values["crawlId"] = context.conf.get_trimmed("storage.crawl.id")
    values |= {name: form[name] for name in _NUMBER_FIELDS if form.get(name)}
    return context.start_job(msgspec.convert(values, CrawlRequest, strict=False), caller).id


def _stop_job(authorizer: Authorizer, form: FormData, _: Caller) -> str:
    """Interrupt a job, as Ctrl-C does; return its id."""
    return authorizer.context.jobs.stop(form.get("id", "")).id
