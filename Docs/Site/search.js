// The search of the site. Every page loads this file; it reads search.json, which Scripts/index-site writes, when the
// search is opened for the first time. `?search=words` opens a page with a search.
(() => {
  const root = document.currentScript.src.replace(/[^/]*$/, "");
  const limit = 50;
  const limitOfPage = 3;
  let index;

  // Each entry of the index is [title, kind, place, url, text].
  function load() {
    index ??= fetch(root + "search.json").then((response) => response.json()).then((entries) =>
      entries.map(([title, kind, place, url, text]) => ({
        title, kind, place, url, text, page: url.split("#")[0],
        // A whole guide comes before a section of another one, and a section before a symbol.
        weight: kind !== "Guide" ? 1 : url.includes("#") ? 1.3 : 2,
        lowerTitle: title.toLowerCase(), lowerText: `${place} ${text}`.toLowerCase(),
      })));
    return index;
  }

  // Returns how well a text has a word: as the whole text, at the beginning of a word, or inside of one.
  function rank(text, word) {
    if (text === word) return 4;
    let found = 0;
    for (let at = text.indexOf(word); at >= 0 && found < 3; at = text.indexOf(word, at + 1)) {
      found = Math.max(found, at === 0 || !/[a-z0-9]/.test(text[at - 1]) ? 3 : 1);
    }
    return found;
  }

  function score(entry, words) {
    let sum = 0;
    for (const word of words) {
      const found = 10 * rank(entry.lowerTitle, word) + rank(entry.lowerText, word);
      if (found === 0) return 0;
      sum += found;
    }
    // Among equals, a short title comes first, because it has little besides the words.
    return sum * entry.weight - Math.min(entry.title.length, 60) / 100;
  }

  function results(entries, query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return [];
    const scored = entries.map((entry) => ({ entry, score: score(entry, words) })).filter((each) => each.score > 0);
    scored.sort((a, b) => b.score - a.score);
    const shown = new Map();
    const isShown = ({ entry: { page } }) => shown.set(page, (shown.get(page) ?? 0) + 1).get(page) <= limitOfPage;
    return scored.filter(isShown).slice(0, limit).map(({ entry }) => ({ entry, words }));
  }

  function element(name, className, ...children) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children);
    return made;
  }

  // Returns the part of the text around the first word that it has, with the word marked.
  function excerpt({ entry, words }) {
    const lower = entry.text.toLowerCase();
    const word = words.find((each) => lower.includes(each));
    if (word === undefined) return [entry.text.slice(0, 140)];
    const at = lower.indexOf(word);
    const from = at < 60 ? 0 : entry.text.indexOf(" ", at - 60) + 1;
    const end = at + word.length;
    return [
      (from > 0 ? "… " : "") + entry.text.slice(from, at),
      element("mark", "", entry.text.slice(at, end)),
      entry.text.slice(end, end + 90) + (end + 90 < entry.text.length ? " …" : ""),
    ];
  }

  function item(result) {
    const link = element("a", "site-search-result",
      element("span", "site-search-title", result.entry.title),
      element("span", "site-search-place", [result.entry.kind, result.entry.place].filter(Boolean).join(" · ")),
      element("span", "site-search-text", ...excerpt(result)));
    link.href = root + result.entry.url.slice(1);
    return element("li", "", link);
  }

  const open = element("button", "site-search-open", "Search");
  const home = element("a", "site-search-home", "Overview");
  const input = element("input", "site-search-input");
  const list = element("ol", "site-search-results");
  const dialog = element("dialog", "site-search", input, list);
  open.type = "button";
  open.title = "Search guides, symbols and their text (Ctrl+K or ⌘K)";
  home.href = root + "documentation";
  input.type = "search";
  input.placeholder = "Search guides, symbols and their text";
  input.setAttribute("aria-label", input.placeholder);

  async function show() {
    const query = input.value;
    let found;
    try {
      found = results(await load(), query);
    } catch (error) {
      index = undefined;
      list.replaceChildren(element("li", "site-search-note", `The index cannot be loaded: ${error.message}`));
      return;
    }
    // The query may have changed while the index was loaded.
    if (query !== input.value) return;
    const note = query.trim() === "" ? "" : "No page has all of these words.";
    list.replaceChildren(...(found.length > 0 ? found.map(item) : [element("li", "site-search-note", note)]));
  }

  function start(query) {
    if (dialog.open) return;
    dialog.showModal();
    if (query !== undefined) input.value = query;
    input.select();
    show();
  }

  open.addEventListener("click", () => start());
  input.addEventListener("input", show);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") list.querySelector("a")?.click();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest("a")) dialog.close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      start();
    }
  });

  document.addEventListener("DOMContentLoaded", () => {
    document.body.append(element("div", "site-search-bar", home, open), dialog);
    const query = new URLSearchParams(location.search).get("search");
    if (query !== null) start(query);
  });
})();
