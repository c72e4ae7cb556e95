"""Resets a browser tab between pages, so that a page leaves no traces for the next one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

_MAX_HEAP_BYTES = (
    64 << 20
)  # bytes; a larger heap is discarded with its process, or it would count against the next page
_REMOVE_LISTENERS_SCRIPT = "try { document.open(); document.close(); } catch (error) {}"
"""Removes all listeners, so that none notices the navigation; XML documents cannot be opened."""
_CLEAR_STORAGE_SCRIPT = """(() => {
  const from = window.navigation && navigation.activation;
  if (window !== top || !from || from.from || from.navigationType === "reload") return;
  window.name = "";
  try { sessionStorage.clear(); } catch (error) {}
})()"""
"""Clears the tab's state in the first document, not in later loads; pages without storage access raise."""


async def reset_tab(page: Page, session: CDPSession, evaluate: Callable[[str], Awaitable[object]]) -> bool:
    """Navigate a tab to a blank page without history; return whether it is reusable."""
    heap = await session.send("Runtime.getHeapUsage")
    if sum(heap.get(name, 0) for name in ("totalSize", "embedderHeapUsedSize", "backingStorageSize")) > _MAX_HEAP_BYTES:
        return False
    await evaluate(_REMOVE_LISTENERS_SCRIPT)
    await page.goto("about:blank")
    await session.send("Page.resetNavigationHistory")
    return True


async def clear_tab_storage(session: CDPSession, world: str) -> None:
    """Clear the tab's state in the next document, before its own scripts run."""
    await session.send("Page.enable")  # required for the script to run
    await session.send("Page.addScriptToEvaluateOnNewDocument", {"source": _CLEAR_STORAGE_SCRIPT, "worldName": world})
