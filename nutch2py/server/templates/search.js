// Suggestions and live results while the user types. The page works without this script.
(() => {
  const box = document.querySelector("form[role=search] input[name=q]");
  if (!box) return;
  const form = box.form, live = Boolean(document.querySelector("header"));
  const list = document.createElement("ul");
  let request = null, hitsTimer = 0, pageTimer = 0;

  list.id = "suggestions";
  list.setAttribute("aria-label", box.dataset.suggestions);
  box.after(list);
  const suggestionList = suggestions(box, list, "");
  const clickReporter = reportClicks();

  // Replaces the results of the open page with those of a URL.
  const update = async (url, isPartial) => {
    request?.abort();
    request = new AbortController();
    try {
      const headers = { Accept: "text/html", ...clickReporter.headers() };
      const response = await fetch(isPartial ? `${url}&partial=1` : url, { signal: request.signal, headers });
      if (!response.ok) return false;
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const main = page.getElementById("main");
      if (!main) return false;
      document.getElementById("main").replaceWith(main);
      document.title = page.title;
      return true;
    } catch {
      return false;
    }
  };
  const searchUrl = () => `/?${new URLSearchParams({ q: box.value.trim() })}`;

  box.addEventListener("input", event => {
    if (event.isComposing) return; // an input method is composing
    clearTimeout(hitsTimer);
    clearTimeout(pageTimer);
    hitsTimer = setTimeout(() => { if (live && box.value.trim()) update(searchUrl(), true); }, 120);
    pageTimer = setTimeout(async () => {
      const url = searchUrl();
      if (live && box.value.trim() && await update(url, false) && url !== location.pathname + location.search) {
        history.pushState(null, "", url);
      }
    }, 900);
  });
  form.addEventListener("submit", () => { clearTimeout(hitsTimer); clearTimeout(pageTimer); request?.abort(); });

  document.addEventListener("keydown", event => {
    const inText = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key === "/" && !inText && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      box.focus();
      box.select();
    }
  });
  addEventListener("popstate", () => {
    box.value = new URLSearchParams(location.search).get("q") || "";
    suggestionList.reset();
    if (!live || !box.value) location.reload();
    else update(location.pathname + location.search, false);
  });
})();
