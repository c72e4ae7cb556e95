// Suggestion list below an input field, for the search page and the embedded box. `home`: "" or the URL of this server.
const suggestions = (box, list, home) => {
  let rows = [], chosen = -1, typed = box.value, request = null, timer = 0;
  const attributes = {
    role: "combobox", autocomplete: "off", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id,
  };
  for (const [name, value] of Object.entries(attributes)) box.setAttribute(name, value);
  list.setAttribute("role", "listbox");
  list.hidden = true;

  const close = () => {
    list.hidden = true;
    chosen = -1;
    box.setAttribute("aria-expanded", "false");
    box.removeAttribute("aria-activedescendant");
  };
  const stop = () => {
    clearTimeout(timer);
    request?.abort();
    close();
  };

  const choose = number => {
    chosen = number;
    [...list.children].forEach((row, at) => row.setAttribute("aria-selected", String(at === number)));
    if (number < 0) box.removeAttribute("aria-activedescendant");
    else box.setAttribute("aria-activedescendant", list.children[number].id);
    box.value = number < 0 || rows[number].page ? typed : rows[number].text;
  };
  const go = row => {
    stop();
    if (row.page) {
      if (/^https?:/.test(row.url)) location.assign(row.url);
      return;
    }
    box.value = row.text;
    box.form.requestSubmit();
  };

  const element = (row, at) => {
    const item = document.createElement("li"), text = document.createElement("span");
    item.id = `${list.id}-${at}`;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    text.textContent = row.text;
    item.append(text);
    if (row.page) {
      const kind = document.createElement("small");
      kind.textContent = row.kind;
      item.append(kind);
    }
    item.addEventListener("pointerdown", event => { event.preventDefault(); go(row); });
    return item;
  };
  const show = ([query, texts, kinds, urls]) => {
    if (query !== box.value.trim() || box.getRootNode().activeElement !== box) return;
    close();
    rows = texts.map((text, at) => ({ text, kind: kinds[at], page: kinds[at] !== "", url: urls[at] }));
    list.replaceChildren(...rows.map(element));
    list.hidden = !rows.length;
    box.setAttribute("aria-expanded", String(!list.hidden));
  };

  const suggest = async () => {
    request?.abort();
    request = new AbortController();
    const query = box.value.trim();
    if (!query) { close(); return; }
    try {
      const response = await fetch(`${home}/suggest?${new URLSearchParams({ q: query })}`,
        { signal: request.signal, credentials: home ? "omit" : "same-origin", referrerPolicy: "no-referrer" });
      if (response.ok) show(await response.json());
    } catch {
      // aborted, or the server is unavailable: the form still works without suggestions
    }
  };

  box.addEventListener("input", event => {
    typed = box.value;
    if (event.isComposing) return; // an input method is composing
    clearTimeout(timer);
    timer = setTimeout(suggest, 120);
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
  box.form.addEventListener("submit", stop);
  return { reset() { typed = box.value; stop(); } };
};
