// Suggestions and results while somebody types. Without this script the page does all else: forms and links are enough.
(() => {
  const box = document.querySelector("form[role=search] input[name=q]");
  if (!box) return;
  const form = box.form, live = Boolean(document.querySelector("header"));
  const list = document.createElement("ul");
  let loading = null, soon = 0, later = 0;

  list.id = "suggestions";
  list.setAttribute("aria-label", box.dataset.suggestions);
  box.after(list);
  const suggested = suggestions(box, list, "");

  // Takes the results of an address into the page that is open.
  const take = async (address, part) => {
    loading?.abort();
    loading = new AbortController();
    try {
      const from = part ? `${address}&part=1` : address;
      const answer = await fetch(from, { signal: loading.signal, headers: { Accept: "text/html" } });
      if (!answer.ok) return false;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const main = fresh.getElementById("main");
      if (!main) return false;
      document.getElementById("main").replaceWith(main);
      document.title = fresh.title;
      return true;
    } catch {
      return false;
    }
  };
  const address = () => `/?${new URLSearchParams({ q: box.value.trim() })}`;

  box.addEventListener("input", event => {
    if (event.isComposing) return; // an input method is at work
    clearTimeout(soon);
    clearTimeout(later);
    soon = setTimeout(() => { if (live && box.value.trim()) take(address(), true); }, 120);
    later = setTimeout(async () => {
      const there = address();
      if (live && box.value.trim() && await take(there, false) && there !== location.pathname + location.search) {
        history.pushState(null, "", there);
      }
    }, 900);
  });
  form.addEventListener("submit", () => { clearTimeout(soon); clearTimeout(later); loading?.abort(); });

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
    suggested.forget();
    if (!live || !box.value) location.reload();
    else take(location.pathname + location.search, false);
  });
})();
