/* moments.js - the moments for which a space has a map: the same call sites have the same numbers
 * at all of them, the same addresses the same place in the picture, and a slider steps through. */

const MOMENT = ["step", "peak", "end", "asked"];
/* Places that stay where they are may take so much more room than the largest map alone. */
const STABLE_PART = 1.5;

/* A space's moments in order of time: {kind, ns, map, own}; "own" is the verdict's. */
function moments_of(space, run) {
  if (space.steps) return space.steps;
  const list = space.moments.slice();
  if (space.map) list.push({kind: "own", ns: run.moment, map: space.map, own: true});
  list.sort((a, b) => a.ns - b.ns);
  number_sites(list);
  space.steps = list;
  list.slots = slots_of(list);
  return list;
}

/* Give the call sites of all maps the numbers of the verdict's, and further ones behind. */
function number_sites(list) {
  const numbers = new Map(), all = [];
  const key = (s) => s.name + "\n" + s.file + "\n" + s.line;
  for (const m of [...list].sort((a, b) => !!b.own - !!a.own))
    for (const s of m.map.sites)
      if (!numbers.has(key(s))) {
        numbers.set(key(s), all.length);
        all.push(s);
      }
  for (const {map} of list) {
    const number = map.sites.map((s) => numbers.get(key(s)));
    const own = new Map(map.sites.map((s, i) => [number[i], s]));
    map.order = number;
    map.sites = all.map((s, i) => own.get(i) || {...s, bytes: 0, blocks: 0});
    for (let i = 0; i < map.pieces.count; i++)
      if (map.pieces.kind[i] >= KIND.SITE)
        map.pieces.kind[i] = KIND.SITE + number[map.pieces.kind[i] - KIND.SITE];
  }
}

/* Ranges of addresses that hold the segments of all moments, so that each keeps its place; null:
 * they would take too much room, so each moment is laid out for itself. */
function slots_of(list) {
  const all = [], out = [];
  let most = 0, sum = 0;
  for (const {map} of list) {
    most = Math.max(most, map.bytes);
    for (const s of map.segments) all.push(s);
  }
  all.sort((a, b) => a.start - b.start || b.size - a.size);
  for (const s of all) {
    const last = out[out.length - 1];
    if (last && s.start < last.start + last.size)
      last.size = Math.max(last.size, s.start + s.size - last.start);
    else out.push({start: s.start, size: s.size});
  }
  for (const slot of out) sum += slot.size;
  return list.length > 1 && sum <= most * STABLE_PART ? out : null;
}

function Moments(root, page) {
  const slider = make("input", {type: "range", min: "0", step: "1", id: "map-at",
    "aria-label": "Moment of the map"});
  const back = make("button", {title: "[", "aria-label": "Earlier moment"}, "◂");
  const on = make("button", {title: "]", "aria-label": "Later moment"}, "▸");
  const said = make("span", {class: "at"});
  const ticks_box = make("div", {class: "ticks"}), dots = make("div", {class: "dots"});
  const box = make("div", {class: "moments"}, make("div", {class: "row"}, back, on, said),
    make("div", {class: "track"}, dots, slider, ticks_box));
  let ticks_for = null;
  root.append(box);

  const list = () => moments_of(page.space(), page.data.run);

  /* Where nothing else is chosen, the one that was asked for, else the verdict's. */
  function index() {
    const wanted = state.number("at", page.asked_ns), all = list();
    const own = all.findIndex((m) => m.own);
    if (wanted < 0) return own >= 0 ? own : all.length - 1;
    let at = 0;
    all.forEach((m, i) => {
      if (Math.abs(m.ns - wanted) < Math.abs(all[at].ns - wanted)) at = i;
    });
    return at;
  }

  function name_of(m) {
    const run = page.data.run, space = page.space();
    if (m.own && run.at === "failure")
      return space.moment === space.peak ? "the failure, which is the peak" : "the failure";
    if (m.own) return page.space() === page.data.spaces[run.primary] ? "the peak" : "the moment";
    return {peak: "the peak", end: "the end"}[m.kind] || "";
  }

  /* How long before the failure, for the last steps. */
  function before(m) {
    const run = page.data.run, late = run.moment - page.space().late.from;
    const gap = run.moment - m.ns;
    return run.at === "failure" && gap > 0 && gap <= late ? gap : 0;
  }

  function round_time(ns) {
    return time_text(ns).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");
  }

  function tick_text(m) {
    const name = name_of(m).replace("the ", "").replace(/,.*/, "");
    return name || (before(m) ? "−" + round_time(before(m)) : round_time(m.ns));
  }

  function long_text(m) {
    const name = name_of(m), gap = before(m);
    return (name ? "At " + name + ", after " : "After ") + time_text(m.ns) +
      (gap && !name ? ", " + round_time(gap) + " before the failure" : "");
  }

  function choose(i) {
    const all = list(), m = all[Math.max(0, Math.min(all.length - 1, i))];
    tip.hide();
    state.set({at: m.own && page.asked_ns < 0 ? null : m.ns}, true);
  }

  function draw_ticks(all) {
    ticks_for = all;
    ticks_box.textContent = dots.textContent = "";
    all.forEach((m, i) => {
      const tick = make("button", {tabindex: "-1", class: name_of(m) ? "named" : ""}, tick_text(m));
      tick.onclick = () => choose(i);
      dots.append(make("i", {}));
      dots.lastChild.style.left = tick.style.left = (100 * i) / Math.max(1, all.length - 1) + "%";
      ticks_box.append(tick);
    });
  }

  slider.oninput = () => choose(Number(slider.value));
  back.onclick = () => choose(index() - 1);
  on.onclick = () => choose(index() + 1);
  keys.push(["[", "", () => choose(index() - 1), root]);
  keys.push(["]", "", () => choose(index() + 1), root]);
  keys.push(["[ ]", "in the map: an earlier, a later moment", null]);
  page.map_ns = () => (root.offsetParent && list().length && !list()[index()].own
    ? list()[index()].ns : null);

  return {
    list,
    /* The moment that is shown. */
    now: () => list()[index()],
    long_text,
    draw() {
      const all = list(), i = index(), m = all[i];
      box.hidden = all.length < 2;
      slider.max = String(all.length - 1);
      slider.value = String(i);
      slider.setAttribute("aria-valuetext", long_text(m) + ": " + size_text(m.map.live) + " live");
      if (ticks_for !== all) draw_ticks(all);
      [...ticks_box.children].forEach((tick, k) => tick.classList.toggle("now", k === i));
      back.disabled = i === 0;
      on.disabled = i === all.length - 1;
      said.textContent = "";
      said.append(make("b", {}, long_text(m)), ": " + size_text(m.map.live) + " live");
    },
  };
}
