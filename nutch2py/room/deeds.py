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

from nutch2py.errors import InputError, NutchError
from nutch2py.rest.gatekeeper import Gatekeeper
from nutch2py.rest.kinds import Crawl
from nutch2py.rest.refusal import Refusal, storage_refusal
from nutch2py.rest.tokens import Caller, Role
from nutch2py.room.answers import Look, answer, refused

_NUMBERS = ("depth", "pages", "minutes")
_FIELDS = 20  # of a form
Form = dict[str, str]


def routes(gatekeeper: Gatekeeper) -> list[BaseRoute]:
    """Return the paths; who uses them needs the role ``run``, and no page of another site can."""
    return [
        Route("/crawl/new", partial(_ask, gatekeeper), methods=["GET"]),
        Route("/crawl/new", partial(_done, gatekeeper, partial(_begin, gatekeeper)), methods=["POST"]),
        Route("/crawl/stop", partial(_done, gatekeeper, partial(_stop, gatekeeper)), methods=["POST"]),
    ]


async def _ask(gatekeeper: Gatekeeper, request: Request) -> Response:
    try:
        gatekeeper.admitted(request, Role.RUN, changes=False)
    except Refusal as error:
        return refused("/crawl/new", error)
    return answer("/crawl/new", _form({}))


def _form(given: Form, why: str = "") -> Look:
    known = {name: given.get(name, "") for name in ("seeds", *_NUMBERS)}
    return Look("new.html", "New crawl", {"given": known | {"stay": given.get("stay", "host")}, "why": why})


async def _done(gatekeeper: Gatekeeper, deed: Callable[[Form, Caller], str], request: Request) -> Response:
    """Do what a form asks for, write it down, and lead to the first page; or say why it was not done."""
    path, form, who = request.url.path, {}, ""
    try:
        caller = gatekeeper.admitted(request, Role.RUN, changes=True)
        who = caller.name
        text = (await gatekeeper.body(request)).decode("utf-8", "replace")
        try:
            form = dict(parse_qsl(text, max_num_fields=_FIELDS))
        except ValueError:
            raise InputError(f"a form has at most {_FIELDS} fields") from None
        what = await gatekeeper.threads.run(deed, form, caller)
        made: Response = RedirectResponse("/crawl", HTTPStatus.SEE_OTHER)
    except (NutchError, msgspec.ValidationError, OSError) as error:
        known = storage_refusal(error) if isinstance(error, OSError) else error
        what = str(known)
        if isinstance(known, Refusal):
            made = refused(path, known)
        elif path == "/crawl/new":
            made = answer(path, _form(form, what), HTTPStatus.BAD_REQUEST)
        else:
            made = answer(path, Look("message.html", "Not done", {"text": what}), HTTPStatus.BAD_REQUEST)
    address = request.client.host if request.client else ""
    await gatekeeper.threads.run(gatekeeper.office.audit.note, who, address, "POST", path, made.status_code, what)
    return made


def _begin(gatekeeper: Gatekeeper, form: Form, caller: Caller) -> str:
    """Begin a whole crawl in the crawl that the room shows; return the id of the job."""
    office = gatekeeper.office
    seeds = form.get("seeds", "").split()
    if not seeds:
        raise InputError("name at least one URL where it begins")
    wanted: dict[str, Any] = {"job": "crawl", "seeds": seeds, "stay": form.get("stay", "host")}
    wanted["crawlId"] = office.conf.get_trimmed("storage.crawl.id")
    wanted |= {name: form[name] for name in _NUMBERS if form.get(name)}
    return office.start(msgspec.convert(wanted, Crawl, strict=False), caller).id


def _stop(gatekeeper: Gatekeeper, form: Form, _: Caller) -> str:
    """Interrupt a job as Ctrl-C does; return its id."""
    return gatekeeper.office.children.stop(form.get("id", "")).id
