"""Scripts that run in an isolated world of a page, which the page's scripts cannot modify."""

from __future__ import annotations

import json

ISOLATED_WORLD = "nutch2py"

INIT_SCRIPT = """(() => {
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection"]) delete globalThis[name];
  const methods = "assert count debug dir dirxml error group groupCollapsed info log table timeLog trace warn";
  for (const name of methods.split(" ")) console[name] = () => {};
  window.close = () => {};
  const hush = (event) => event.preventDefault();
  for (const name of ["error", "unhandledrejection"]) addEventListener(name, hush);
})()"""
"""Runs in each frame before its own scripts.

It removes WebRTC, which could bypass the proxy, in addition to a Chromium option. Console messages and errors would
all be sent to the driver and delay other pages. A page without history, as in these tabs, could close itself.
"""

_SNAPSHOT_SCRIPT = """(() => {
  const root = document.documentElement;
  const url = location.href;
  if (!root) return {url, html: "", size: 0};
  for (const unseen of document.querySelectorAll("noscript")) unseen.remove();
  let shadows = false, html;
  const all = document.createNodeIterator(root, NodeFilter.SHOW_ELEMENT);
  for (let node = all.nextNode(); node && !shadows; node = all.nextNode()) shadows = !!node.shadowRoot;
  const inert = shadows && document.implementation.createHTMLDocument("");
  const copied = (node) => {
    const made = inert.importNode(node, false);
    for (const child of node.shadowRoot ? node.shadowRoot.childNodes : []) made.append(copied(child));
    for (const child of node.childNodes) made.append(copied(child));
    return made;
  };
  try {
    html = (shadows ? copied(root) : root).outerHTML;
  } catch (error) {  // nested too deeply to traverse
    html = root.outerHTML;
  }
  const type = document.doctype ? "<!DOCTYPE " + document.doctype.name + ">" : "";
  return {url, html: (type + html).slice(0, LIMIT), size: type.length + html.length};
})()"""

_QUIET_SCRIPT = """new Promise((done) => {
  const start = performance.now();
  let last = start, frames = 0;
  const frame = () => { if (++frames < 2) requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  const observer = new MutationObserver(() => { last = performance.now(); });
  observer.observe(document, {subtree: true, childList: true, characterData: true});
  const timer = setInterval(() => {
    const now = performance.now();
    if ((now - last < QUIET || frames < 2) && now - start < 4 * QUIET) return;
    clearInterval(timer);
    observer.disconnect();
    done(true);
  }, 50);
})"""

_SCROLL_SCRIPT = """(async () => {
  const root = document.documentElement, height = root.scrollHeight, start = performance.now();
  let last = start, changed = false, frames = 0;
  const frame = () => { if (++frames < 3) requestAnimationFrame(frame); };
  const observer = new MutationObserver(() => { changed = true; last = performance.now(); });
  observer.observe(document, {subtree: true, childList: true, characterData: true});
  scrollTo(0, root.scrollHeight);
  requestAnimationFrame(frame);
  await new Promise((done) => {
    const timer = setInterval(() => {
      const now = performance.now();
      const quiet = changed ? now - last > 250 : now - start > WAIT && frames > 2;
      if (quiet || now - start > 4 * WAIT) { clearInterval(timer); done(); }
    }, 50);
  });
  observer.disconnect();
  return changed || root.scrollHeight > height;
})()"""


def snapshot_script(limit: int) -> str:
    """Return the script that yields ``url``, ``html`` (at most ``limit`` characters) and its full ``size``.

    ``noscript`` elements are removed; open shadow trees are inlined where they are displayed.
    """
    return _SNAPSHOT_SCRIPT.replace("LIMIT", str(limit))


def wait_quiet_script(seconds: float) -> str:
    """Return the script that waits until the document is unchanged for ``seconds``, at most four times that.

    It runs in the page's own thread, so a busy page is not idle. It also waits for two frames, since visibility
    observers run with frames.
    """
    return _QUIET_SCRIPT.replace("QUIET", str(int(seconds * 1000)))


def wait_ready_script(is_complete: bool) -> str:
    """Return the script that waits until the document is parsed or, if ``is_complete``, loaded."""
    states = "'complete'" if is_complete else "'interactive', 'complete'"
    return f"""new Promise((done) => {{
  const check = () => {{ if ([{states}].includes(document.readyState)) done(true); }};
  document.addEventListener('readystatechange', check);
  check();
}})"""


def scroll_script(wait: float) -> str:
    """Return the script that scrolls to the end and returns whether the page changed within ``wait`` seconds."""
    return _SCROLL_SCRIPT.replace("WAIT", str(int(wait * 1000)))


def wait_selector_script(selector: str) -> str:
    """Return the script that waits for an element; an invalid selector never matches."""
    wanted = json.dumps(selector)
    return f"""new Promise((done) => {{
  const matches = () => {{ try {{ return !!document.querySelector({wanted}); }} catch (error) {{ return false; }} }};
  if (matches()) return done(true);
  const timer = setInterval(() => {{ if (matches()) {{ clearInterval(timer); done(true); }} }}, 100);
}})"""
