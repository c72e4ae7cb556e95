// Reports clicks on results, and the time until the user comes back, when the server logs searches (search.log).
// The session id is random and exists only in this page: no cookie, no storage.
function reportClicks() {
  const session = Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, "0")).join("");
  const findHits = () => document.querySelector("ol.hits[data-token]");
  let last = history.state?.click ?? null; // the page was loaded again when the user came back

  const send = report => {
    navigator.sendBeacon?.("/api/v1/clicks", new Blob([JSON.stringify({ ...report, session })], { type: "application/json" }));
  };
  const onClick = event => {
    if (event.type === "auxclick" && event.button !== 1) return; // only the middle button opens a link
    const link = event.target.closest("ol.hits > li > h2 > a[href]"), hits = findHits();
    if (!link || !hits || !hits.contains(link)) return;
    const position = hits.start + [...hits.children].indexOf(link.closest("li"));
    last = { resultToken: hits.dataset.token, position, time: Date.now() };
    history.replaceState({ click: last }, "");
    send({ resultToken: last.resultToken, position });
  };
  const onReturn = () => {
    if (!last || document.visibilityState !== "visible") return;
    const { resultToken, position, time } = last;
    last = null;
    history.replaceState(null, "");
    send({ resultToken, position, dwellMs: Math.max(0, Date.now() - time) });
  };
  document.addEventListener("click", onClick);
  document.addEventListener("auxclick", onClick);
  document.addEventListener("visibilitychange", onReturn);
  addEventListener("pageshow", onReturn);
  return { headers: () => findHits() ? { "X-Search-Session": session } : {} };
}
