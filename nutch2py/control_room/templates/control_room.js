// Live updates: on each "change" event, fetch the open page and replace the elements marked data-live that differ.
// A job that was started here and has ended is announced until the page is left.
// Without this script, reload the page to see changes.
"use strict";
(() => {
  const liveElements = () => [...document.querySelectorAll("[data-live]")];
  if (!liveElements().length || !window.EventSource) return;
  const status = document.getElementById("live");
  let updating = false, updateAgain = false;

  const startedJobs = root => new Map([...root.querySelectorAll("[data-job]")].map(each => [each.dataset.job, each.dataset.name]));
  let startedHere = startedJobs(document);

  const announceEnded = page => {
    const running = startedJobs(page);
    for (const [id, name] of startedHere) {
      if (running.has(id)) continue;
      const toast = document.createElement("p"), link = document.createElement("a");
      link.textContent = `${name} has ended: show its result`;
      link.href = `/crawl/job?id=${encodeURIComponent(id)}`;
      toast.append(link);
      document.getElementById("toasts").append(toast);
    }
    startedHere = running;
  };

  const update = async () => {
    if (updating) { updateAgain = true; return; }
    updating = true;
    try {
      const response = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!response.ok && response.status !== 404) return;
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      announceEnded(page);
      for (const element of liveElements()) {
        const replacement = page.querySelector(`[data-live="${element.dataset.live}"]`);
        const focused = document.activeElement, isTyping = element.contains(focused) && focused.tagName !== "SUMMARY";
        if (!replacement || replacement.innerHTML === element.dataset.was || isTyping) continue;
        element.dataset.was = replacement.innerHTML;
        const place = [...element.querySelectorAll("summary")].indexOf(focused);
        const open = [...element.querySelectorAll("details")].map(each => each.open);
        element.replaceChildren(...replacement.childNodes);
        element.querySelectorAll("details").forEach((each, number) => { each.open = open[number] || false; });
        if (place >= 0) element.querySelectorAll("summary")[place]?.focus();
      }
    } catch {
      // The server is unavailable; EventSource reconnects.
    } finally {
      updating = false;
      if (updateAgain) { updateAgain = false; setTimeout(update, 500); }
    }
  };

  const events = new EventSource("/crawl/events");
  events.onopen = () => { status.textContent = "live"; };
  events.onerror = () => { status.textContent = "not connected"; };
  events.addEventListener("change", update);
  addEventListener("pagehide", () => events.close());
})();
