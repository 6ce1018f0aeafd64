/* main.js - puts the page together once its data is read. Ends the script. */

/* asked: what the page opens with, if it is no report: {view, space, at}. */
function Page(data, asked) {
  const page = {
    data,
    asked_ns: "at" in asked ? Number(asked.at) : -1,
    map_ns: () => null, /* the moment of the map that is shown, if it is not the verdict's */
    /* The space that is looked at: the verdict's, if it held anything. */
    space: () => data.spaces.find((s) => s.name === state.get("space", asked.space)) ||
      (data.spaces[data.run.primary].peak && data.spaces[data.run.primary]) ||
      data.spaces.find((s) => s.peak) || data.spaces[0],
    slices: () => data.spaces[0].slices.count,
    /* Whether colours tell classes of the ledger: where they are known, if not chosen otherwise. */
    by_class() {
      const known = page.space().curve.classes.slice(0, -1).some((c) => c.some((v) => v > 0));
      return known && state.get("by") !== "site";
    },
    /* The colour of a call site in the curve; null: it is in the rest. */
    colour(place) {
      if (page.by_class()) return class_colour(place.class_number);
      return place.index >= 0 && place.index < GROUPS - 1 ? group_colour(place.index) : null;
    },
    /* The selected lane, and null for none; with what it held at its call sites, if that is known. */
    lane: () => data.lanes.list[state.number("only", -1)] || null,
    filter() {
      const lane = page.lane(), groups = page.space().groups;
      const held = lane && groups && groups.by_lane.get(lane.index);
      return held && held.nodes ? {lane, held} : null;
    },
    /* Whose memory the flame graph and the call sites are about. */
    whose: () => (page.filter() || {lane: page.space()}).lane.name,
    /* The range that the views below follow: what a lane held is known of the whole run only. */
    applied_range: () => (page.filter() ? null : page.range()),
    /* The selected slices, `to` not included; null: none. */
    range() {
      const from = state.number("from", -1), to = state.number("to", -1), n = page.slices();
      return from >= 0 && to > from && to <= n && from % 1 === 0 && to % 1 === 0
        ? {from, to} : null;
    },
  };
  return page;
}

/* The pictures of one process: what is to be shown, and draw(changed), which main.js calls. */
function Pictures(data, number) {
  const asked = document.getElementById("views").dataset, page = Page(data, asked);
  const root = make("div", {class: "pictures"});
  const curve = make("section", {id: "timeline"}, make("h2", {}, "Memory over time"));
  const below = make("section", {id: "details"}), panels = new Map();

  const space_tabs = Tabs("Space", "space",
    () => data.spaces.map((s) => [s.name, s.name + " · " + size_text(s.peak)]),
    () => page.space().name);
  const head = process_head(number);
  if (head) root.append(head);
  if (data.spaces.length > 1) (asked.view ? below : curve).append(space_tabs.box);
  const timeline = Timeline(curve, page);
  root.append(curve);

  function shown() {
    const possible = views.filter((v) => v.shows(page.space()));
    return possible.find((v) => v.id === state.get("view", asked.view)) || possible[0];
  }
  const view_tabs = Tabs("View", "view", () => views.map((v) => [v.id, v.title]),
    () => shown().id);
  if (views.length > 1) below.append(view_tabs.box);
  else below.append(make("h2", {}, views[0].title));
  for (const view of views) {
    const panel = make("div", {role: "tabpanel", id: "panel-" + view.id, class: "panel"});
    below.append(panel);
    panels.set(view, {panel, draw: view.make(panel, page)});
  }
  const table = document.querySelector("#layout details"); /* for who has no scripts */
  if (table) table.open = false;
  if (asked.view) curve.before(below);
  else curve.after(below);

  /* changed: keys of the state; without it all is drawn. */
  function draw(changed) {
    const current = shown();
    space_tabs.draw();
    view_tabs.draw();
    for (const button of view_tabs.box.children)
      button.hidden = !views.find((v) => v.id === button.dataset.id).shows(page.space());
    for (const [view, one] of panels) {
      one.panel.hidden = view !== current;
      if (view === current) one.draw();
    }
    const own = new Set(current.own);
    if (!changed || [...changed].some((key) => !own.has(key))) timeline.redraw();
  }

  let width = 0;
  new ResizeObserver(() => {
    if (root.isConnected && width !== root.clientWidth) draw();
    width = root.clientWidth;
  }).observe(root);
  return {root, draw, print: () => timeline.draw()};
}

/* The process that the address names; its data is read when it is first shown. */
const STANDS = "All of the verdict stands above."; /* without the pictures */
const shown = {made: new Map(), number: -1, now: null};

async function show_process() {
  const number = process_number(), box = document.getElementById("views");
  shown.number = number;
  if (!shown.made.has(number))
    shown.made.set(number, read_block(document.getElementById(number ? "d" + number : "d"),
      decode).then((data) => Pictures(data, number)));
  let made;
  try {
    made = await shown.made.get(number);
  } catch (e) {
    box.replaceChildren();
    cannot("their data is damaged: " + e.message + ".", STANDS);
    return;
  }
  if (number !== shown.number) return; /* another one was chosen meanwhile */
  shown.now = made;
  box.replaceChildren(made.root);
  made.draw();
  made.print();
  document.documentElement.dataset.ready = "yes";
}

function start() {
  const processes = Processes();
  processes.draw();
  state.listen((changed) => {
    if (changed.has("theme")) theme_apply();
    if (changed.has("process")) {
      processes.draw();
      show_process();
    } else if (shown.now) shown.now.draw(changed);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change",
    () => shown.now && shown.now.draw());
  window.addEventListener("beforeprint", () => shown.now && shown.now.print());
  show_process();
}

if (open_tools(STANDS)) start();
})();
