"""The scripts of ours that run in a page, in a world of their own, which those of the page cannot change."""

from __future__ import annotations

import json

ISOLATED_WORLD = "nutch2py"

INIT_SCRIPT = """(() => {
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection"]) delete globalThis[name];
  const said = "assert count debug dir dirxml error group groupCollapsed info log table timeLog trace warn";
  for (const name of said.split(" ")) console[name] = () => {};
  window.close = () => {};
  const hush = (event) => event.preventDefault();
  for (const name of ["error", "unhandledrejection"]) addEventListener(name, hush);
})()"""
"""Runs in each frame before its own scripts. WebRTC would ask beside the proxy, were it not for an option as well; what
a page says on the console, and its errors, would all be sent to the driver, and keep it from other pages. A page that
has no history, as there is none in our tabs, could close itself."""

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
  } catch (error) {  // nested too deep to be walked through
    html = root.outerHTML;
  }
  const type = document.doctype ? "<!DOCTYPE " + document.doctype.name + ">" : "";
  return {url, html: (type + html).slice(0, LIMIT), size: type.length + html.length};
})()"""

_QUIET_SCRIPT = """new Promise((done) => {
  const begun = performance.now();
  let last = begun, frames = 0;
  const frame = () => { if (++frames < 2) requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  const observer = new MutationObserver(() => { last = performance.now(); });
  observer.observe(document, {subtree: true, childList: true, characterData: true});
  const timer = setInterval(() => {
    const now = performance.now();
    if ((now - last < QUIET || frames < 2) && now - begun < 4 * QUIET) return;
    clearInterval(timer);
    observer.disconnect();
    done(true);
  }, 50);
})"""

_SCROLL_SCRIPT = """(async () => {
  const root = document.documentElement, height = root.scrollHeight, begun = performance.now();
  let last = begun, changed = false, frames = 0;
  const frame = () => { if (++frames < 3) requestAnimationFrame(frame); };
  const observer = new MutationObserver(() => { changed = true; last = performance.now(); });
  observer.observe(document, {subtree: true, childList: true, characterData: true});
  scrollTo(0, root.scrollHeight);
  requestAnimationFrame(frame);
  await new Promise((done) => {
    const timer = setInterval(() => {
      const now = performance.now();
      const quiet = changed ? now - last > 250 : now - begun > WAIT && frames > 2;
      if (quiet || now - begun > 4 * WAIT) { clearInterval(timer); done(); }
    }, 50);
  });
  observer.disconnect();
  return changed || root.scrollHeight > height;
})()"""


def snapshot_script(limit: int) -> str:
    """Return the script that gives ``url``, ``html`` (``limit`` characters at most) and its whole ``size``.

    What a reader whose scripts run does not see (``noscript``) is left out; open shadow trees stand where they show.
    """
    return _SNAPSHOT_SCRIPT.replace("LIMIT", str(limit))


def wait_quiet_script(seconds: float) -> str:
    """Return the script that waits until the document has not changed for so long, at most for four times that.

    It waits in the page's own thread: one that is busy is not at rest. Nor is one that has not been shown: observers of
    what is in sight are told by frames.
    """
    return _QUIET_SCRIPT.replace("QUIET", str(int(seconds * 1000)))


def scroll_script(wait: float) -> str:
    """Return the script that scrolls to the end and tells whether something came of it within ``wait`` seconds."""
    return _SCROLL_SCRIPT.replace("WAIT", str(int(wait * 1000)))


def wait_selector_script(selector: str) -> str:
    """Return the script that waits until an element is there; a selector that is none is never found."""
    wanted = json.dumps(selector)
    return f"""new Promise((done) => {{
  const look = () => {{ try {{ return !!document.querySelector({wanted}); }} catch (error) {{ return false; }} }};
  if (look()) return done(true);
  const timer = setInterval(() => {{ if (look()) {{ clearInterval(timer); done(true); }} }}, 100);
}})"""
