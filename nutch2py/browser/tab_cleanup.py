"""One page after another in the same tab, without a trace: what a page leaves behind, the next does not find."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

_MAX_HEAP_BYTES = 64 << 20  # bytes; what has held more goes with its process, or the next page would be blamed for it
_REMOVE_LISTENERS_SCRIPT = "try { document.open(); document.close(); } catch (error) {}"
"""Takes all listeners away, so that none hears that the page is left; a document of XML cannot be opened."""
_CLEAR_STORAGE_SCRIPT = """(() => {
  const from = window.navigation && navigation.activation;
  if (window !== top || !from || from.from || from.navigationType === "reload") return;
  window.name = "";
  try { sessionStorage.clear(); } catch (error) {}
})()"""
"""What goes with a tab is forgotten by the first document, not by those that a page loads in its place; a page that may
keep nothing raises at its storage."""


async def reset_tab(page: Page, session: CDPSession, evaluate: Callable[[str], Awaitable[Any]]) -> bool:
    """Leave a page for a blank one without a history; tell whether it can be used for another."""
    heap = await session.send("Runtime.getHeapUsage")
    if sum(heap.get(name, 0) for name in ("totalSize", "embedderHeapUsedSize", "backingStorageSize")) > _MAX_HEAP_BYTES:
        return False
    await evaluate(_REMOVE_LISTENERS_SCRIPT)
    await page.goto("about:blank")
    await session.send("Page.resetNavigationHistory")
    return True


async def clear_tab_storage(session: CDPSession, world: str) -> None:
    """Have the document that a session loads forget what the tab held, before its own scripts run."""
    await session.send("Page.enable")  # else it runs in none
    await session.send("Page.addScriptToEvaluateOnNewDocument", {"source": _CLEAR_STORAGE_SCRIPT, "worldName": world})
