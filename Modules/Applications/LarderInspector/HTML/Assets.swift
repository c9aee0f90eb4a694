#if Inspector
/// The files that the pages load.
///
/// They are part of the program, and load nothing else.
enum Assets {
  static let stylesheet = #"""
    :root {
      --back: #f7f7f5; --card: #fff; --line: #dcdcd6; --text: #1d1f21; --quiet: #5c6066; --accent: #0b5cad; --accent-back: #e8f0f9;
      --good: #1c6b34; --bad: #a3231b; --bad-back: #fbeceb; --string: #1c6b34; --literal: #8a4300;
      color-scheme: light dark;
    }
    @media (prefers-color-scheme: dark) {
      :root {
        --back: #17181a; --card: #1f2124; --line: #373a3f; --text: #e6e6e3; --quiet: #a2a6ac; --accent: #7db7f5; --accent-back: #24303d;
        --good: #7fce96; --bad: #f3968f; --bad-back: #3a2221; --string: #8fd3a4; --literal: #e7b174;
      }
    }
    * { box-sizing: border-box; }
    body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
    a { color: var(--accent); text-underline-offset: .2em; }
    h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 1rem; overflow-wrap: anywhere; font-weight: 650; }
    h2 { font-size: 1.1rem; margin: 1.75rem 0 .5rem; overflow-wrap: anywhere; font-weight: 650; }
    :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
    .skip { position: absolute; left: -99rem; background: var(--card); padding: .5rem 1rem; }
    .skip:focus { left: 1rem; top: .5rem; z-index: 1; }
    header { display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: center; padding: .6rem 1.25rem; background: var(--card);
      border-bottom: 1px solid var(--line); }
    header .brand { font-weight: 700; color: var(--text); text-decoration: none; padding: .25rem 0; }
    header nav { flex: 1 1 12rem; min-width: 0; }
    header ol { display: flex; flex-wrap: wrap; list-style: none; margin: 0; padding: 0; }
    header li { max-width: 24rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; padding: .25rem 0; }
    header li + li::before { content: "/"; margin: 0 .5rem; color: var(--quiet); }
    .mode, .live { font-size: .85rem; color: var(--quiet); margin: 0; white-space: nowrap; }
    .mode.writes { color: var(--bad); font-weight: 600; }
    .live::before { content: ""; display: inline-block; width: .6em; height: .6em; border-radius: 50%; background: var(--good);
      margin-right: .4em; }
    main { max-width: 76rem; margin: 0 auto; padding: 1.5rem 1.25rem 3rem; }
    footer { max-width: 76rem; margin: 0 auto; padding: 0 1.25rem 2rem; color: var(--quiet); font-size: .85rem; }
    kbd { font: inherit; border: 1px solid var(--line); border-radius: 4px; padding: 0 .35em; background: var(--card); }
    .cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(22rem, 100%), 1fr)); gap: 1rem; }
    .card, .table, pre.value, .editor, .search { background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
    .card { padding: 1rem 1.1rem; min-width: 0; }
    .card h2 { margin: 0 0 .75rem; }
    .facts { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .6rem 1.75rem; margin: 0 0 1rem; }
    details > .facts { margin: .5rem 0 0; }
    summary { cursor: pointer; color: var(--quiet); }
    .facts .term { display: block; font-size: .8rem; color: var(--quiet); }
    .facts li { overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
    .states { gap: .75rem; }
    .state { flex: 1 1 9rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .6rem .9rem; }
    .state [data-count] { font-size: 1.5rem; font-weight: 650; }
    .state.dead [data-count] { color: var(--bad); }
    .chart { display: block; width: 100%; height: 2rem; }
    .chart polyline { fill: none; stroke: var(--accent); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
    .state.dead polyline { stroke: var(--bad); }
    td .chart { min-width: 7rem; height: 1.25rem; }
    .response { margin: 0 0 1rem; }
    .response h3 { font-size: 1rem; margin: 0 0 .75rem; font-weight: 650; }
    .response .table { margin-top: .5rem; }
    .decision { background: var(--accent-back); border-radius: 8px; padding: .75rem 1rem; overflow-wrap: anywhere; }
    .actions { display: flex; flex-wrap: wrap; gap: .5rem; margin: 0 0 1rem; align-items: center; }
    td.actions { margin: 0; flex-wrap: nowrap; }
    .card .actions { margin: 0 0 .75rem; }
    .actions form { display: contents; }
    .button, button { display: inline-block; font: inherit; line-height: 1.4; padding: .3rem .75rem; border: 1px solid var(--line);
      border-radius: 6px; background: var(--card); color: var(--text); text-decoration: none; cursor: pointer; white-space: nowrap; }
    .button:hover, button:hover { background: var(--accent-back); border-color: var(--accent); }
    .button[aria-current] { background: var(--accent-back); border-color: var(--accent); color: var(--accent); font-weight: 600; }
    .button[aria-disabled] { color: var(--quiet); cursor: default; background: none; border-style: dashed; }
    button.primary { background: var(--accent); border-color: var(--accent); color: var(--card); font-weight: 600; }
    button.danger { color: var(--bad); border-color: var(--bad); }
    button.danger:hover { background: var(--bad-back); }
    .search { display: flex; flex-wrap: wrap; gap: .5rem; align-items: end; padding: .75rem 1rem; margin: 0 0 1rem; }
    .search label:first-of-type { flex: 1 1 14rem; }
    label { display: block; font-size: .85rem; color: var(--quiet); }
    input, select, textarea { display: block; font: inherit; color: var(--text); background: var(--back); border: 1px solid var(--line);
      border-radius: 6px; padding: .3rem .5rem; width: 100%; margin-top: .15rem; }
    select { width: auto; }
    textarea, pre, .hex, code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .87rem; }
    .hex { font-size: .8rem; }
    .editor { padding: 1rem; display: grid; gap: .9rem; }
    .editor .actions { margin: 0; }
    .table { overflow-x: auto; }
    table { border-collapse: collapse; width: 100%; }
    th, td { text-align: left; padding: .4rem .9rem; border-bottom: 1px solid var(--line); vertical-align: top; }
    thead th { font-size: .8rem; font-weight: 500; color: var(--quiet); background: var(--back); white-space: nowrap; }
    tbody tr:last-child > * { border-bottom: 0; }
    tbody th { font-weight: 500; overflow-wrap: anywhere; min-width: 9rem; max-width: 30rem; }
    .number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
    .preview { color: var(--quiet); overflow-wrap: anywhere; font-size: .9rem; min-width: 9rem; }
    .kind { display: inline-block; font-size: .75rem; border: 1px solid var(--line); border-radius: 4px; padding: 0 .35em; }
    .folder::before { content: "▸ "; color: var(--quiet); }
    .folder { font-weight: 600; }
    pre.value { margin: 0 0 1rem; padding: 1rem; overflow-x: auto; max-height: 70vh; tab-size: 2; }
    img.value { max-width: 100%; border: 1px solid var(--line); border-radius: 8px; background: repeating-conic-gradient(#bbb 0 25%, #eee 0 50%) 0 0 / 20px 20px; }
    .name { color: var(--accent); } .string { color: var(--string); } .literal { color: var(--literal); }
    .pages { display: flex; gap: .5rem; margin: 1rem 0; }
    .quiet, .empty { color: var(--quiet); }
    .good { color: var(--good); font-weight: 600; }
    .problem { color: var(--bad); overflow-wrap: anywhere; }
    p.problem { background: var(--bad-back); border-radius: 8px; padding: .75rem 1rem; }
    .question { font-size: 1.05rem; overflow-wrap: anywhere; }
    @media (max-width: 34rem) {
      main { padding: 1rem .75rem 2rem; } header { padding: .5rem .75rem; } footer { display: none; }
      th, td { padding: .4rem .6rem; } tbody th, .preview { min-width: 7rem; }
      .state { flex-basis: 40%; }
      .stacked thead { position: absolute; left: -99rem; }
      .stacked tr { display: block; padding: .4rem 0; border-bottom: 1px solid var(--line); }
      .stacked tr:last-child { border-bottom: 0; }
      .stacked th, .stacked td { display: block; border: 0; padding: .15rem .6rem; text-align: left; max-width: none; }
      .stacked td[data-label]::before { content: attr(data-label) ": "; color: var(--quiet); }
      .stacked td.actions { display: flex; padding: .4rem .6rem; }
    }
    """#

  static let script = #"""
    "use strict";
    const seconds = 1000;

    // Counts arrive after the page, because counting can take long.
    for (const card of document.querySelectorAll("[data-counts]")) {
      fetch(card.dataset.counts).then((response) => response.ok ? response.json() : {}).then((counts) => {
        for (const place of card.querySelectorAll("[data-count]")) place.textContent = counts[place.dataset.count] ?? "unknown";
        const details = card.querySelector("[data-details]");
        for (const [name, value] of counts.details ?? []) {
          const [group, term, text] = ["li", "span", "span"].map((kind) => document.createElement(kind));
          term.textContent = name.replace(/([A-Z])/g, " $1").toLowerCase().replace(/^./, (first) => first.toUpperCase());
          term.className = "term";
          text.textContent = value;
          group.append(term, " ", text);
          details.append(group);
          details.parentElement.hidden = false;
        }
      }).catch(() => {});
    }

    // A page is read again when its store reports a change, but not while something is typed into it or selected in it.
    const live = document.querySelector("[data-live]");
    const samples = new Map();
    let last, lastTime, deadAtStart;
    function isInUse() {
      const focus = document.activeElement;
      return document.hidden || getSelection().toString() !== "" || ["INPUT", "TEXTAREA", "SELECT", "BUTTON"].includes(focus.tagName);
    }
    async function readAgain() {
      const response = await fetch(location.href);
      if (!response.ok || isInUse()) return;
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const focused = document.activeElement?.getAttribute("href");
      document.querySelector("main").replaceWith(page.querySelector("main"));
      for (const link of document.querySelectorAll("main a")) if (focused && link.getAttribute("href") === focused) { link.focus(); break; }
    }
    function show(state, now) {
      const figures = {...state};
      if (last) {
        const rate = (name) => (state[name] - last[name]) * seconds / (now - lastTime);
        if (state.changes !== undefined) figures.rate = rate("changes");
        for (const name of Object.keys(last)) if (name.startsWith("total:")) figures[name.replace("total:", "rate:")] = rate(name);
        const reads = rate("hits") + rate("misses");
        if (reads > 0) figures.ratio = rate("hits") / reads;
      }
      if (state.dead !== undefined) {
        deadAtStart ??= state.dead;
        figures.died = Math.max(0, state.dead - deadAtStart);
      }
      for (const place of document.querySelectorAll("main [data-count]")) {
        const value = figures[place.dataset.count];
        const isRatio = place.dataset.count === "ratio";
        const text = (number) => isRatio ? `${Math.round(100 * number)} %` : number.toLocaleString("en", {maximumFractionDigits: 0});
        if (value !== undefined) place.textContent = typeof value === "number" ? text(value) : value;
      }
      for (const chart of document.querySelectorAll("main [data-chart]")) {
        const name = chart.dataset.chart;
        const values = samples.get(name) ?? [];
        samples.set(name, values);
        if (figures[name] !== undefined) values.push(figures[name]);
        if (values.length > 120) values.shift();
        const most = name === "ratio" ? 1 : Math.max(1, ...values);
        const points = values.map((value, index) => `${120 - values.length + index + 1},${31 - 30 * value / most}`).join(" ");
        chart.querySelector("polyline").setAttribute("points", points);
      }
    }
    async function look() {
      try {
        if (!document.hidden) {
          const response = await fetch(live.dataset.live);
          if (!response.ok) throw new Error();
          const [state, now] = [await response.json(), performance.now()];
          live.hidden = false;
          const hasChanged = last && JSON.stringify(last) !== JSON.stringify(state);
          if (hasChanged && live.dataset.still === undefined && !isInUse()) await readAgain();
          show(state, now);
          [last, lastTime] = [state, now];
        }
      } catch {
        live.hidden = true;
      }
      setTimeout(look, 2 * seconds);
    }
    if (live) look();

    // A change of many continues by itself until it is stopped.
    const progress = document.querySelector("form[data-continue]");
    if (progress) {
      const timer = setTimeout(() => progress.requestSubmit(), 300);
      document.querySelector("[data-stop]")?.addEventListener("click", () => clearTimeout(timer));
    }

    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
      const target = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
      if (!target) return;
      event.preventDefault();
      if (target.tagName === "INPUT") target.focus(); else target.click();
    });
    """#
}
#endif
