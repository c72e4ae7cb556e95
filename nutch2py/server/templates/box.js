// A search box for another site: <script src="https://search.example.org/box.js" defer></script> puts it where the tag is.
// data-label, data-lang and data-suggestions of the tag name it. It lives in a shadow tree: the site's style and its own do not meet.
"use strict";
(() => {
  const tag = document.currentScript, home = new URL(tag.src).origin;
  const label = tag.dataset.label || "Search";
  const host = document.createElement("nutch2py-search"), root = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`
    :host { display: block; max-width: 32rem; font: 16px/1.5 system-ui, sans-serif; color: CanvasText; color-scheme: light dark; }
    form { display: flex; gap: .5rem; position: relative; margin: 0; }
    input { flex: 1; min-width: 0; font: inherit; padding: .45rem .75rem; color: FieldText; background: Field; border: 1px solid GrayText; border-radius: .4rem; }
    button { font: inherit; padding: .45rem 1rem; border: 1px solid GrayText; border-radius: .4rem; color: ButtonText; background: ButtonFace; cursor: pointer; }
    ul { position: absolute; z-index: 9; top: 100%; left: 0; right: 0; margin: .2rem 0 0; padding: .25rem 0; list-style: none; color: CanvasText; background: Canvas; border: 1px solid GrayText; border-radius: .4rem; }
    li { padding: .3rem .75rem; overflow-wrap: anywhere; cursor: pointer; }
    li[aria-selected=true], li:hover { color: HighlightText; background: Highlight; }
    [hidden] { display: none; }`);
  root.adoptedStyleSheets = [sheet];
  const made = (name, attributes) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const form = made("form", { role: "search", action: `${home}/`, "aria-label": label });
  const box = made("input", { type: "text", name: "q", "aria-label": label, placeholder: label, autocomplete: "off",
    maxlength: "1000", enterkeyhint: "search", role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false",
    "aria-controls": "list" });
  const button = made("button", {}), list = made("ul", { id: "list", role: "listbox",
    "aria-label": tag.dataset.suggestions || "Suggestions", hidden: "" });
  button.textContent = label;
  if (tag.dataset.lang) host.lang = tag.dataset.lang;
  form.append(box, button, list);
  root.append(form);
  tag.before(host);

  let rows = [], chosen = -1, typed = "", soon = 0, asking = null;
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
    else box.setAttribute("aria-activedescendant", `row-${number}`);
  };
  const go = address => { if (/^https?:/.test(address)) location.assign(address); };
  const suggest = async () => {
    asking?.abort();
    asking = new AbortController();
    typed = box.value.trim();
    if (!typed) { close(); return; }
    try {
      const answer = await fetch(`${home}/suggest?${new URLSearchParams({ q: typed })}`,
        { signal: asking.signal, credentials: "omit", referrerPolicy: "no-referrer" });
      if (!answer.ok) return;
      const [asked, texts, , addresses] = await answer.json();
      if (asked !== box.value.trim()) return;
      rows = addresses;
      list.replaceChildren(...texts.map((text, at) => {
        const item = made("li", { id: `row-${at}`, role: "option", "aria-selected": "false" });
        item.textContent = text;
        item.addEventListener("pointerdown", event => { event.preventDefault(); go(addresses[at]); });
        return item;
      }));
      chosen = -1;
      list.hidden = !rows.length;
      box.setAttribute("aria-expanded", String(!list.hidden));
    } catch {
      close(); // the search is away, or this site may not ask it: the form leads there still
    }
  };
  box.addEventListener("input", event => { if (!event.isComposing) { clearTimeout(soon); soon = setTimeout(suggest, 120); } });
  box.addEventListener("blur", close);
  box.addEventListener("keydown", event => {
    if (event.isComposing || list.hidden) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose((chosen + 1 + (event.key === "ArrowDown" ? 1 : -1) + rows.length + 1) % (rows.length + 1) - 1);
    } else if (event.key === "Enter" && chosen >= 0) {
      event.preventDefault();
      go(rows[chosen]);
    } else if (event.key === "Escape") {
      close();
    }
  });
})();
