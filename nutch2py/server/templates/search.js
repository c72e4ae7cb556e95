// Suggestions and results while somebody types. Without this script the page does all else: forms and links are enough.
"use strict";
(() => {
  const box = document.querySelector("form[role=search] input[name=q]");
  if (!box) return;
  const form = box.form, live = Boolean(document.querySelector("header"));
  const list = document.createElement("ul");
  let rows = [], chosen = -1, typed = box.value, asking = null, loading = null, soon = 0, later = 0;

  list.id = "suggestions";
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", box.dataset.suggestions);
  box.after(list);
  for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-expanded", "false"],
    ["aria-controls", list.id]]) box.setAttribute(name, value);

  const close = () => {
    list.hidden = true;
    chosen = -1;
    box.setAttribute("aria-expanded", "false");
    box.removeAttribute("aria-activedescendant");
  };

  const choose = number => {
    chosen = number;
    [...list.children].forEach((row, at) => row.setAttribute("aria-selected", String(at === number)));
    if (number < 0) box.removeAttribute("aria-activedescendant");
    else box.setAttribute("aria-activedescendant", list.children[number].id);
    box.value = number < 0 || rows[number].page ? typed : rows[number].text;
  };

  const go = row => {
    close();
    if (row.page) { location.assign(row.address); return; }
    box.value = row.text;
    form.requestSubmit();
  };

  const show = ([asked, texts, kinds, addresses]) => {
    if (asked !== box.value.trim() || document.activeElement !== box) return;
    rows = texts.map((text, at) => ({ text, page: kinds[at] !== "", address: addresses[at] }));
    list.replaceChildren(...rows.map((row, at) => {
      const item = document.createElement("li");
      item.id = `suggestion-${at}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", "false");
      const text = document.createElement("span");
      text.textContent = row.text;
      item.append(text);
      if (row.page) {
        const kind = document.createElement("small");
        kind.textContent = kinds[at];
        item.append(kind);
      }
      item.addEventListener("pointerdown", event => { event.preventDefault(); go(row); });
      return item;
    }));
    chosen = -1;
    list.hidden = !rows.length;
    box.setAttribute("aria-expanded", String(!list.hidden));
    box.removeAttribute("aria-activedescendant");
  };

  const suggest = async () => {
    asking?.abort();
    asking = new AbortController();
    if (box.value.trim().length < 1) { close(); return; }
    try {
      const answer = await fetch(`/suggest?${new URLSearchParams({ q: box.value.trim() })}`, { signal: asking.signal });
      if (answer.ok) show(await answer.json());
    } catch {
      // typed on, or the server is away: no suggestion is nothing to tell
    }
  };

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
    typed = box.value;
    if (event.isComposing) return; // an input method is at work
    clearTimeout(soon);
    clearTimeout(later);
    soon = setTimeout(() => { suggest(); if (live && box.value.trim()) take(address(), true); }, 120);
    later = setTimeout(async () => {
      const there = address();
      if (live && box.value.trim() && await take(there, false) && there !== location.pathname + location.search) {
        history.pushState(null, "", there);
      }
    }, 900);
  });
  box.addEventListener("compositionend", () => box.dispatchEvent(new Event("input")));

  box.addEventListener("keydown", event => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (list.hidden) { suggest(); return; }
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      choose((chosen + 1 + step + rows.length + 1) % (rows.length + 1) - 1);
    } else if (event.key === "Enter" && chosen >= 0) {
      event.preventDefault();
      go(rows[chosen]);
    } else if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      box.value = typed;
      close();
    }
  });
  box.addEventListener("blur", close);
  form.addEventListener("submit", () => { clearTimeout(soon); clearTimeout(later); loading?.abort(); close(); });

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
    typed = box.value;
    close();
    if (!live || !box.value) location.reload();
    else take(location.pathname + location.search, false);
  });
})();
