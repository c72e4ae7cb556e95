// A search box for another site: <script src="https://search.example.org/box.js" defer></script> inserts it before the tag.
// data-label, data-lang and data-suggestions set its texts. It uses a shadow tree, so that styles of the site do not apply.
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
    li { display: flex; justify-content: space-between; gap: 1rem; padding: .3rem .75rem; overflow-wrap: anywhere; cursor: pointer; }
    li[aria-selected=true], li:hover { color: HighlightText; background: Highlight; }
    span { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; unicode-bidi: plaintext; text-align: left; }
    small { white-space: nowrap; }
    [hidden] { display: none; }`);
  root.adoptedStyleSheets = [sheet];
  const createElement = (name, attributes) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const form = createElement("form", { role: "search", action: `${home}/`, "aria-label": label });
  const box = createElement("input", { type: "text", name: "q", "aria-label": label, placeholder: label, maxlength: "1000", enterkeyhint: "search" });
  const button = createElement("button", {}), list = createElement("ul", { id: "list", "aria-label": tag.dataset.suggestions || "Suggestions" });
  button.textContent = label;
  if (tag.dataset.lang) host.lang = tag.dataset.lang;
  form.append(box, button, list);
  root.append(form);
  tag.before(host);
  suggestions(box, list, home);
})();
