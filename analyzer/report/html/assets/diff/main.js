/* main.js - puts a comparison's page together once its data is read. Ends the script. */

/* "+1.2 MiB", "−3 KiB", "0 B". */
function change_text(bytes) {
  return (bytes > 0 ? "+" : "") + size_text(bytes);
}

function percent_text(a, b) {
  const p = (100 * (b - a)) / a;
  return (p > 0 ? "+" : "−") + Math.abs(p).toFixed(Math.abs(p) < 9.95 ? 1 : 0) + " %";
}

function DiffPage(data) {
  const page = {
    data,
    space: () => data.spaces.find((s) => s.name === state.get("space")) || first(),
    measure_list() {
      const {a, b} = data.sides, at = a.at === b.at ? "Live at the " + a.at
        : "Live at " + a.at + " and " + b.at;
      const list = [["moment", /^[0-9]/.test(a.at) && a.at === b.at ? "Live after " + a.at : at],
        ["peak", "Live at each side's peak"], ["total", "Allocated until then"]];
      return a.at === "peak" && b.at === "peak" ? list.filter((m) => m[0] !== "peak") : list;
    },
    measure() {
      const wanted = state.get("measure"), known = page.measure_list().map((m) => m[0]);
      return known.includes(wanted) ? wanted : data.sides.by === "total" ? "total" : "moment";
    },
    can_each: () => page.space().a.requests > 0 && page.space().b.requests > 0,
    /* Whether bytes are those of one request. */
    each() {
      const wanted = state.get("each", data.sides.per_request ? "yes" : "no");
      return page.can_each() && wanted === "yes";
    },
    /* What bytes of a side become. */
    scaled(side) {
      const by = page.each() ? page.space()[side].requests : 1;
      return (bytes) => bytes / by;
    },
  };
  /* Where most changed. */
  function first() {
    const sum = (s) => s.lines.list.reduce((n, l) =>
      n + (l.kind === "same" ? 0 : Math.abs(l.change)), 0);
    return data.spaces.reduce((best, s) => {
      const better = sum(s) - sum(best) || s.b.bytes + s.a.bytes - best.a.bytes - best.b.bytes;
      return better > 0 ? s : best;
    });
  }
  return page;
}

function start(data) {
  const page = DiffPage(data), root = document.getElementById("views");
  const curve = make("section", {id: "timeline"}, make("h2", {},
    data.sides.one_run ? "The run over time" : "Both runs over time",
    make("small", {}, "live bytes")));
  const below = make("section", {id: "details"}), panels = new Map();
  const tabs = Tabs("Space", "space", () => data.spaces.map((s) => [s.name, s.name + " · " +
    change_text(s.b.bytes - s.a.bytes)]), () => page.space().name);
  if (data.spaces.length > 1) curve.append(tabs.box);
  const curves = Curves(curve, page);
  root.append(curve);

  function shown() {
    return views.find((v) => v.id === state.get("view")) || views[0];
  }
  const view_tabs = Tabs("View", "view", () => views.map((v) => [v.id, v.title]), () => shown().id);
  const measures = Choice("Measure", "measure", {});
  const each = make("button", {id: "each", "aria-pressed": "false", title: "r"},
    "For each request");
  each.onclick = () => state.set({each: page.each() ? "no" : "yes"});
  keys.push(["r", "bytes in all, or for each request", () => each.hidden || each.click()]);
  below.append(make("div", {class: "row heads"}, view_tabs.box, measures.select, each));
  for (const view of views) {
    const panel = make("div", {role: "tabpanel", id: "panel-" + view.id, class: "panel"});
    below.append(panel);
    panels.set(view, {panel, draw: view.make(panel, page)});
  }
  root.append(below);

  function draw(changed) {
    const current = shown(), own = new Set(current.own);
    tabs.draw();
    view_tabs.draw();
    measures.draw(page.measure_list(), page.measure());
    each.hidden = !page.can_each();
    each.setAttribute("aria-pressed", String(page.each()));
    for (const [view, one] of panels) {
      one.panel.hidden = view !== current;
      if (view === current) one.draw();
    }
    if (!changed || [...changed].some((key) => !own.has(key))) curves.redraw();
  }

  state.listen((changed) => {
    if (changed.has("theme")) theme_apply();
    draw(changed);
  });
  let width = 0;
  new ResizeObserver(() => {
    if (width !== root.clientWidth) draw();
    width = root.clientWidth;
  }).observe(root);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  window.addEventListener("beforeprint", () => curves.draw());
  draw();
  curves.draw();
  document.documentElement.dataset.ready = "yes";
}

open_page(read_diff, start, "All of the comparison stands above.");
})();
