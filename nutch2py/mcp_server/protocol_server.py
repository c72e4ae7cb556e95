"""The MCP server: tools and resources over the SDK, and its stdio transport."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import anyio
import msgspec

from nutch2py.conf.configuration import Configuration
from nutch2py.conf.redaction import redact
from nutch2py.errors import NutchError
from nutch2py.mcp_server.crawl_tools import TOOLS, CrawlTool, CrawlTools, ToolCall
from nutch2py.mcp_server.tool_schemas import MAX_PAGE_CHARACTERS, JobList, PageText, ToolArguments, ToolResult
from nutch2py.mcp_server.untrusted_text import NOTICE, clean_page_text, mark_untrusted
from nutch2py.rest.access.tokens import Caller, Role
from nutch2py.rest.context import RestContext
from nutch2py.rest.dispatch.authorization import Authorizer
from nutch2py.rest.http_error import describe_publicly, storage_error
from nutch2py.support.formatting import valid_utf8
from nutch2py.support.reporting import use_reporter, warnings_only_reporter
from nutch2py.version import __version__

if TYPE_CHECKING:
    from mcp import types
    from mcp.server import Server, ServerRequestContext

PAGE_URI = "nutch2py://page/"
"""Prefix of the URIs of pages; the percent-encoded URL of the page follows."""
_STATISTICS_URI = "nutch2py://statistics"
_MAX_MESSAGE = 2000
_INSTRUCTIONS = f"Search and read the pages of a web crawl. {NOTICE} Name the URLs of the pages that an answer uses."
_LOG = logging.getLogger("nutch2py.mcp")
_TOOLS = {tool.name: tool for tool in TOOLS}


class ProtocolHandlers:
    """Handles the requests of clients.

    Args:
        tools: The services of the tools.
        find_caller: Returns the client of a request and its address.
        is_operator: The client runs the server itself: errors name files and properties.
    """

    def __init__(
        self,
        tools: CrawlTools,
        find_caller: Callable[[ServerRequestContext[Any, Any]], tuple[Caller, str]],
        *,
        is_operator: bool,
    ) -> None:
        self._tools, self._find_caller, self._is_operator = tools, find_caller, is_operator
        self._secrets = tools.context.conf.secret_values()

    async def list_tools(
        self, request: ServerRequestContext[Any, Any], _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Return the tools that the caller may call."""
        from mcp import types

        caller, _address = self._find_caller(request)
        return types.ListToolsResult(tools=[_describe_tool(tool) for tool in TOOLS if _may_call(caller, tool)])

    async def call_tool(
        self, request: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Run a tool. Every failure of it is a result with the cause and what to do."""
        from mcp import types
        from mcp.shared.exceptions import MCPError

        tool = _TOOLS.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r:.100}: {', '.join(_TOOLS)}")
        caller, address = self._find_caller(request)
        with anyio.CancelScope(shield=tool.modifies):  # a cancelled change is in the audit log, too
            try:
                result = await self._run(tool, caller, params.arguments or {})
            except (NutchError, msgspec.MsgspecError, OSError) as error:
                message, status = self._describe(error), HTTPStatus.BAD_REQUEST
                text = types.TextContent(type="text", text=message)
                answer = types.CallToolResult(content=[text], is_error=True)
            else:
                ids = [job.id for job in result.jobs] if isinstance(result, JobList) else []
                message, status, answer = f"{', '.join(ids)} {params.arguments}", HTTPStatus.OK, _build_answer(result)
            if tool.modifies:
                record = self._tools.context.audit_log.record
                await self._tools.authorizer.thread_limit.run(
                    record, caller.name, address, "MCP", tool.name, int(status), message
                )
        return answer

    async def _run(self, tool: CrawlTool, caller: Caller, arguments: dict[str, Any]) -> ToolResult:
        if not _may_call(caller, tool):
            raise _RoleError(tool.name, tool.role, caller)
        args: ToolArguments = msgspec.convert(arguments, tool.args_type)
        return await tool.handler(ToolCall(self._tools, caller, args))

    def _describe(self, error: Exception) -> str:
        """Return cause and repair of a failure; nothing about the server, unless the client runs it."""
        if isinstance(error, OSError):
            error = storage_error(error)
        if isinstance(error, msgspec.MsgspecError):
            text = f"invalid arguments: {error}: see the input schema of the tool"
        elif isinstance(error, NutchError) and not self._is_operator and not isinstance(error, _RoleError):
            public = describe_publicly(error)  # which logs the whole message
            text = public if error.public_message() else "the server cannot do this now: its log has the reason"
        else:
            text = str(error)
        return clean_page_text(redact(valid_utf8(text), self._secrets))[:_MAX_MESSAGE]

    async def list_resources(
        self, request: ServerRequestContext[Any, Any], _: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Return the resource with the statistics."""
        from mcp import types

        if not _may_call(self._find_caller(request)[0], _TOOLS["get_statistics"]):
            return types.ListResourcesResult(resources=[])
        described = types.Resource(
            uri=_STATISTICS_URI, name="statistics", title="Statistics of the crawl", mime_type="text/plain"
        )
        return types.ListResourcesResult(resources=[described])

    async def list_templates(
        self, request: ServerRequestContext[Any, Any], _: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Return the template of pages."""
        from mcp import types

        if not _may_call(self._find_caller(request)[0], _TOOLS["get_page"]):
            return types.ListResourceTemplatesResult(resource_templates=[])
        template = types.ResourceTemplate(
            uri_template=f"{PAGE_URI}{{url}}",
            name="page",
            title="Text of a crawled page",
            description=f"Main text as Markdown, at most {MAX_PAGE_CHARACTERS:,} characters. {NOTICE}",
            mime_type="text/markdown",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, request: ServerRequestContext[Any, Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Return a page or the statistics."""
        from mcp import types
        from mcp.shared.exceptions import MCPError

        uri = str(params.uri)
        name, arguments = "get_statistics", dict[str, Any]()
        if uri.startswith(PAGE_URI):
            name = "get_page"
            arguments = {"url": unquote(uri.removeprefix(PAGE_URI)), "maxCharacters": MAX_PAGE_CHARACTERS}
        elif uri != _STATISTICS_URI:
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {uri!r:.200}: use {PAGE_URI}URL")
        try:
            result = await self._run(_TOOLS[name], self._find_caller(request)[0], arguments)
        except (NutchError, msgspec.MsgspecError, OSError) as error:
            raise MCPError(types.INVALID_PARAMS, self._describe(error)) from None
        media_type = "text/markdown" if isinstance(result, PageText) else "text/plain"
        contents = types.TextResourceContents(uri=uri, mime_type=media_type, text=_answer_text(result))
        return types.ReadResourceResult(contents=[contents])


class _RoleError(NutchError):
    """A tool requires a higher role than the caller has."""

    def __init__(self, tool: str, role: Role, caller: Caller) -> None:
        has = f"{caller.name} has the role {caller.role.name.lower()}" if caller.name else "no token was sent"
        name = role.name.lower()
        super().__init__(
            f"{tool} requires the role {name}; {has}: ask the operator for a token (nutch2py token NAME -role {name}), "
            f"or for nutch2py mcp -role {name}"
        )


def create_server(handlers: ProtocolHandlers) -> Server[Any]:
    """Return the SDK's server over the handlers."""
    from mcp.server import Server

    return Server(
        "nutch2py",
        version=__version__,
        title="nutch2py",
        instructions=_INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )


@contextmanager
def open_local_server(conf: Configuration, role: Role) -> Iterator[Server[Any]]:
    """Yield a server for one client, whose user runs it."""
    conf = conf.copy()
    for name in ("rest.tokens.file", "search.keys.required"):  # of HTTP clients; this one has the role of its command
        conf.set(name, "")
    context = RestContext(conf, is_local=True)
    tools, caller = CrawlTools(Authorizer(context)), Caller("stdio", role)
    try:
        yield create_server(ProtocolHandlers(tools, lambda _: (caller, ""), is_operator=True))
    finally:
        tools.close()
        context.close_searchers()
        if context.search_logger is not None:
            context.search_logger.close()


def serve_stdio(conf: Configuration, role: Role) -> int:
    """Serve one client over standard input and output until it closes them."""
    from mcp.server.stdio import stdio_server

    async def serve(server: Server[Any]) -> None:
        async with stdio_server() as (read_stream, write_stream):
            await server.run(read_stream, write_stream, server.create_initialization_options())

    with use_reporter(warnings_only_reporter()), open_local_server(conf, role) as server:
        anyio.run(serve, server)
    return 0


def page_uri(url: str) -> str:
    """Return the URI of the resource with the text of a page.

    >>> page_uri("https://a.org/b?c=d")
    'nutch2py://page/https%3A%2F%2Fa.org%2Fb%3Fc%3Dd'
    """
    return PAGE_URI + quote(url, safe="")


def _may_call(caller: Caller, tool: CrawlTool) -> bool:
    """Return whether the caller may call a tool. Every caller may search: the transport has checked search keys."""
    return max(caller.role, Role.SEARCH) >= tool.role


def _describe_tool(tool: CrawlTool) -> types.Tool:
    from mcp import types

    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=f"{tool.description} {NOTICE}",
        input_schema=_object_schema(tool.args_type),
        output_schema=_object_schema(tool.result_type),
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.modifies,
            destructive_hint=False,
            idempotent_hint=not tool.opens_world,
            open_world_hint=tool.opens_world,
        ),
    )


def _object_schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of a type, an object at its top as the protocol requires."""
    schema = msgspec.json.schema(kind)
    components = schema.pop("$defs", {})
    top = components.pop(kind.__name__, schema)
    return {**top, "$defs": components} if components else dict(top)


def _build_answer(result: ToolResult) -> types.CallToolResult:
    from mcp import types

    content = types.TextContent(type="text", text=_answer_text(result))
    return types.CallToolResult(content=[content], structured_content=msgspec.to_builtins(result))


def _answer_text(result: ToolResult) -> str:
    """Return a result for a model: JSON, and the text of a page as it is, between marks."""
    values = msgspec.to_builtins(result)
    del values["notice"]
    text = values.pop("text", "")
    described = msgspec.json.encode(values).decode()
    return mark_untrusted(f"{described}\n\n{text}" if text else described)
