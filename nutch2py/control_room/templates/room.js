// Takes what has changed into the page that is open: the server says that something has, the page is asked for anew, and
// the parts that are marked data-live are replaced where they differ. Without this script a page is read anew by hand.
"use strict";
(() => {
  const parts = () => [...document.querySelectorAll("[data-live]")];
  if (!parts().length || !window.EventSource) return;
  const told = document.getElementById("live");
  let asking = false, again = false;

  const take = async () => {
    if (asking) { again = true; return; }
    asking = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of parts()) {
        const other = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
        if (!other || other.innerHTML === part.dataset.was || part.contains(document.activeElement)) continue;
        part.dataset.was = other.innerHTML;
        const open = [...part.querySelectorAll("details")].map(each => each.open);
        part.replaceChildren(...other.childNodes);
        part.querySelectorAll("details").forEach((each, number) => { each.open = open[number] || false; });
      }
    } catch {
      // the server is away: the stream of events tells when it is back
    } finally {
      asking = false;
      if (again) { again = false; setTimeout(take, 500); }
    }
  };

  const events = new EventSource("/crawl/events");
  events.onopen = () => { told.textContent = "live"; };
  events.onerror = () => { told.textContent = "not connected"; };
  events.addEventListener("change", take);
  addEventListener("pagehide", () => events.close());
})();
