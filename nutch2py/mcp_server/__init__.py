"""Model Context Protocol: tools with which language models search and read a crawl, over stdio and HTTP.

Exports: ``protocol_server.serve_stdio``, ``http_endpoint.McpEndpoint``, ``require_mcp``.
"""

from __future__ import annotations

from nutch2py.errors import ConfigurationError


def require_mcp(used_by: str) -> None:
    """Raise a ConfigurationError with installation instructions when the SDK of the protocol is not installed."""
    try:
        import mcp.server.lowlevel  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise ConfigurationError(
            f"{used_by} needs the package mcp, which is not installed ({error}): pip install 'nutch2py[mcp]'"
        ) from None
