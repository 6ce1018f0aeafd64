/* lanes.js - requests, stages and threads as lanes in time, and the filter of the other views that
 * follows them. */

const LANE_ROW = {request: 27, stage: 22, thread: 22}; /* pixels from a lane to the next */
const LANE_HEAD = 24; /* a kind's title */
const LANE_AXIS = 22;
const LANES_FIRST = {request: 12, stage: 8, thread: 8}; /* rows of the table, until all are wanted */
const NOTHING = {moment: 0, peak: 0, total: 0, count: 0, temporary: 0};
const KINDS = [["request", "Requests"], ["stage", "Stages"], ["thread", "Threads"]];

/* A tree of the same nodes with what one lane held there. */
function lane_tree(tree, nodes) {
  const out = {...tree};
  for (const m of MEASURES) {
    const column = out[m] = new Float64Array(tree.nodes);
    nodes.at.forEach((node, i) => (column[node] += nodes[m][i]));
    for (let i = tree.nodes - 1; i > 0; i--) column[tree.parent[i]] += column[i];
  }
  return out;
}

function sums_by_place(places) {
  const out = new Map();
  places.at.forEach((place, i) => {
    const row = {};
    for (const m of MEASURES) row[m] = places[m][i];
    out.set(place, row);
  });
  return out;
}

function lane_title(lane) {
  return lane.kind === "request" ? lane.name : lane.kind + " " + lane.name;
}

/* <select> of the lanes whose call sites are known; the same in each view. */
function WorkFilter(page) {
  const select = make("select", {"aria-label": "Whose memory", class: "whose"});
  select.onchange = () => state.set({only: select.value || null, node: null});
  function draw() {
    const held = page.space().groups ? page.space().groups.by_lane : new Map();
    const now = page.filter();
    select.textContent = "";
    select.append(make("option", {value: ""}, "All work"));
    for (const [kind, title] of KINDS) {
      const list = page.data.lanes.list.filter((l) => l.kind === kind && held.get(l.index) &&
        held.get(l.index).nodes);
      list.sort((a, b) => held.get(b.index).peak - held.get(a.index).peak);
      if (!list.length) continue;
      const group = make("optgroup", {label: title});
      for (const lane of list)
        group.append(make("option", {value: lane.index, selected: !!now && now.lane === lane},
          lane_title(lane) + " · " + size_text(held.get(lane.index).peak)));
      select.append(group);
    }
    select.hidden = select.children.length < 2;
  }
  return {
    select, draw,
    /* What the reader has to know of the choice; "": nothing. */
    says() {
      const lane = page.lane(), filter = page.filter();
      if (!lane) return "";
      if (!filter)
        return "Which call sites " + lane_title(lane) + " used is not in this page, so all work " +
          "is shown: the largest lanes of " + page.space().name + " have theirs.";
      return "Only what " + lane_title(lane) + " allocated. “At " + lane.name + "'s peak” is when " +
        "it held most, " + time_text(filter.held.peak_ns) + " after the start." +
        (page.range() ? " The selected range of time does not apply to it." : "");
    },
  };
}

/* Each lane to the first row that is free from its begin on. By begin. */
function pack_lanes(list) {
  const free = [], rows = new Map();
  for (const lane of list) {
    let row = free.findIndex((until) => until <= lane.from);
    if (row < 0) row = free.push(0) - 1;
    free[row] = Math.max(lane.until, lane.from + 1);
    rows.set(lane, row);
  }
  return {rows, count: free.length};
}

function Lanes(root, page) {
  const says = make("p", {class: "hint", role: "status"});
  const pane = Pane("lanes", paint, () => draw());
  const legend = make("ul", {class: "legend"});
  const table = make("table", {class: "places lane-table"});
  const more = make("button", {class: "more"});
  let drawn = [], titles = [], view = null, cursor = null, all = false;

  root.append(says, pane.box, legend,
    make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Lanes"}, table),
    more);
  for (const [kind, title] of [["held", "at its peak, to the scale of its kind"], ["left", "of that, live at the " +
    (page.data.run.at === "failure" ? "failure" : "peak")], ["none", "worked, held little"],
  ["refused", "✕ was refused memory"]])
    legend.append(make("li", {}, make("i", {class: "dot lane-" + kind}), title));

  function held_by(lane) {
    const groups = page.space().groups;
    return (groups && groups.by_lane.get(lane.index)) || {...NOTHING, peak_ns: 0, nodes: null};
  }

  /* The brush selects; what reaches into it is shown. */
  function prepare() {
    const range = page.range(), end = page.data.run.end, slice = end / page.slices();
    const from = range ? range.from * slice : 0, until = range ? range.to * slice : end;
    view = {from, until: Math.max(until, from + 1), most: {request: 1, stage: 1, thread: 1}};
    const list = page.data.lanes.list.filter((l) => l.until >= from && l.from <= until);
    for (const lane of page.data.lanes.list)
      view.most[lane.kind] = Math.max(view.most[lane.kind], held_by(lane).peak);
    drawn = [];
    titles = [];
    let y = LANE_AXIS;
    for (const [kind, title] of KINDS) {
      const some = list.filter((l) => l.kind === kind);
      if (!some.length) continue;
      some.sort((a, b) => a.from - b.from || a.index - b.index);
      titles.push({y, title: title + " · " + count_text(some.length)});
      y += LANE_HEAD;
      const packed = kind === "request" ? pack_lanes(some)
        : {rows: new Map(some.map((l, i) => [l, i])), count: some.length};
      for (const lane of some) drawn.push({lane, y: y + packed.rows.get(lane) * LANE_ROW[kind]});
      y += packed.count * LANE_ROW[kind] + 6;
    }
    view.tall = y + 2;
    view.list = list;
  }

  function x_of(ns, width) {
    return ((ns - view.from) / (view.until - view.from)) * width;
  }

  function rect_of(d) {
    const width = pane.width(), left = Math.max(0, x_of(d.lane.from, width));
    return {x: left, y: d.y, width: Math.max(2, Math.min(width, x_of(d.lane.until, width)) - left),
      height: LANE_ROW[d.lane.kind] - 3};
  }

  function axis(g, width, height, top) {
    g.fillStyle = css("--dim");
    g.strokeStyle = css("--line");
    g.textBaseline = "top";
    g.lineWidth = 1;
    const span = view.until - view.from;
    for (const v of ticks(span, Math.max(2, Math.floor(width / 110)), 10)) {
      const x = Math.round(x_of(view.from + v, width)) + 0.5;
      g.beginPath();
      g.moveTo(x, LANE_AXIS - 4);
      g.lineTo(x, top + height);
      g.stroke();
      if (top > LANE_AXIS) continue;
      g.textAlign = x > width - 40 ? "right" : v === 0 ? "left" : "center";
      g.fillText(time_text(view.from + v), x, 2);
    }
    const at = x_of(page.data.run.moment, width);
    if (page.data.run.at === "failure" && at >= 0 && at <= width) {
      g.strokeStyle = css("--bad");
      g.setLineDash([7, 4]);
      g.beginPath();
      g.moveTo(at, LANE_AXIS - 4);
      g.lineTo(at, top + height);
      g.stroke();
      g.setLineDash([]);
    }
  }

  /* A bar: pale while it worked; as high as its peak, to the scale of its kind; the part that it left
   * behind hatched. */
  function bar(g, d, chosen) {
    const r = rect_of(d), held = held_by(d.lane);
    const scale = r.height / view.most[d.lane.kind], high = Math.round(scale * held.peak);
    const left = Math.min(high, Math.round(scale * held.moment));
    g.globalAlpha = chosen && chosen !== d.lane ? 0.5 : 1;
    g.fillStyle = css("--band");
    g.fillRect(r.x, r.y, r.width, r.height);
    g.fillStyle = css("--lane");
    g.fillRect(r.x, r.y + r.height - Math.max(1, high), r.width, Math.max(1, high));
    if (left > 0) {
      g.fillStyle = css("--left");
      g.fillRect(r.x, r.y + r.height - left, r.width, left);
      g.fillStyle = tile(g, "lines", css("--card"));
      g.fillRect(r.x, r.y + r.height - left, r.width, left);
    }
    if (d.lane.refused) {
      g.strokeStyle = css("--bad");
      g.lineWidth = 2;
      g.strokeRect(r.x + 1, r.y + 1, Math.max(1, r.width - 2), r.height - 2);
    }
    const text = (d.lane.refused ? "✕ " : "") + d.lane.name +
      (held.peak ? "  " + size_text(held.peak) : "");
    const shown = r.width > 34 ? fitted(g, text, r.width - 8, "") : "";
    if (shown) {
      g.lineWidth = 3;
      g.lineJoin = "round";
      g.strokeStyle = css("--card");
      g.strokeText(shown, r.x + 4, r.y + r.height / 2 + 0.5);
      g.fillStyle = css("--fg");
      g.fillText(shown, r.x + 4, r.y + r.height / 2 + 0.5);
    } else if (d.lane.refused && r.width <= 34) {
      g.fillStyle = css("--bad");
      g.fillText("✕", Math.min(r.x + r.width + 2, pane.width() - 12), r.y + r.height / 2);
    }
    g.globalAlpha = 1;
  }

  function paint(g, width, height, top) {
    const chosen = page.lane();
    g.translate(0, -top);
    axis(g, width, height, top);
    g.textBaseline = "middle";
    g.textAlign = "left";
    for (const t of titles) {
      if (t.y + LANE_HEAD < top || t.y > top + height) continue;
      g.font = "600 12px " + css("--font");
      const wide = g.measureText(t.title).width;
      g.fillStyle = css("--card");
      g.fillRect(0, t.y + 3, wide + 8, LANE_HEAD - 6);
      g.fillStyle = css("--fg");
      g.fillText(t.title, 0, t.y + LANE_HEAD / 2);
    }
    g.font = "12px " + css("--font");
    for (const d of drawn)
      if (d.y + LANE_ROW[d.lane.kind] >= top && d.y <= top + height) bar(g, d, chosen);
  }

  function lines_of(lane) {
    const held = held_by(lane), at = page.data.run.at === "failure" ? "failure" : "peak";
    const took = lane.until - lane.from;
    const lines = [(lane.refused ? "✕ " : "") + lane_title(lane),
      time_text(lane.from) + " – " + (lane.unfinished ? "unfinished" : time_text(lane.until)) +
        " · " + time_text(took)];
    if (lane.thread) lines.push("on " + lane.thread);
    if (lane.refused) lines.push("was refused memory");
    lines.push(["var(--lane)", "held at most", size_text(held.peak)],
      ["var(--left)", (lane.unfinished ? "live at the " : "left behind, live at the ") + at,
        size_text(held.moment)],
      ["transparent", "allocated in all", size_text(held.total)],
      ["transparent", "blocks in all", count_text(held.count)]);
    return lines;
  }

  function choose(lane) {
    state.set({only: page.lane() === lane ? null : lane.index, node: null});
  }

  function at(event) {
    const p = pane.at(event);
    let best = null;
    for (const d of drawn) {
      const r = rect_of(d);
      if (p.y < d.y || p.y >= d.y + r.height + 3) continue;
      const away = Math.max(r.x - p.x, p.x - r.x - r.width, 0);
      if (away < 4 && (!best || away < best.away)) best = {d, away};
    }
    return best && best.d;
  }

  function select(d) {
    cursor = d;
    const rect = rect_of(d);
    pane.scroll_to(rect);
    pane.select(rect);
    const p = pane.on_screen(rect);
    tip.show(lines_of(d.lane), p.x, p.y);
  }

  /* To the next one in its row, or to the nearest one of the next row. */
  function step(key) {
    if (!cursor) return drawn.length && select(drawn[0]);
    const sign = key === "ArrowLeft" || key === "ArrowUp" ? -1 : 1;
    const across = key === "ArrowLeft" || key === "ArrowRight";
    let best = null;
    for (const d of drawn) {
      const away = across ? sign * (d.lane.from - cursor.lane.from) : sign * (d.y - cursor.y);
      if (d === cursor || (across && d.y !== cursor.y) || away <= 0) continue;
      const gap = Math.abs(d.lane.from - cursor.lane.from);
      if (!best || away < best.away || (away === best.away && gap < best.gap)) best = {d, away, gap};
    }
    if (best) select(best.d);
  }

  pane.canvas.addEventListener("pointermove", (event) => {
    const d = at(event);
    pane.canvas.style.cursor = d ? "pointer" : "";
    pane.point(d ? rect_of(d) : null);
    if (d) tip.show(lines_of(d.lane), event.clientX, event.clientY);
    else tip.hide();
  });
  pane.canvas.addEventListener("pointerleave", () => {
    pane.point(null);
    tip.hide();
  });
  pane.canvas.addEventListener("click", (event) => {
    const d = at(event);
    if (d) choose((cursor = d).lane);
  });
  pane.canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith("Arrow")) step(event.key);
    else if (event.key === "Enter" && cursor) choose(cursor.lane);
    else if (event.key === "Escape" && page.lane()) state.set({only: null, node: null});
    else if (event.key === "Escape") tip.hide();
    else return;
    event.preventDefault();
  });
  pane.canvas.addEventListener("blur", () => tip.hide());

  const COLUMNS = [["from", "Began after", (l) => l.from, time_text],
    ["took", "Took", (l) => l.until - l.from, time_text],
    ["held", "Held at most", (l) => held_by(l).peak, size_text],
    ["left", "Live at the " + page.data.run.at, (l) => held_by(l).moment, size_text],
    ["total", "Allocated in all", (l) => held_by(l).total, size_text]];

  function draw_table() {
    const wanted = COLUMNS.find((c) => c[0] === state.get("lanes")) || COLUMNS[2];
    const order = KINDS.map((k) => k[0]);
    const list = view.list.slice().sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) ||
      wanted[2](b) - wanted[2](a) || a.index - b.index);
    const left = {...LANES_FIRST}, now = page.lane();
    const shown = list.filter((l) => all || left[l.kind]-- > 0);
    const head = make("tr", {}, make("th", {scope: "col"}, "Lane"));
    for (const column of COLUMNS) {
      const button = make("button", {}, column[1]);
      button.onclick = () => state.set({lanes: column[0]}, true);
      head.append(make("th", {scope: "col", class: "n",
        "aria-sort": column === wanted ? "descending" : null}, button));
    }
    const body = make("tbody", {});
    const most = {request: 1, stage: 1, thread: 1};
    for (const lane of list) most[lane.kind] = Math.max(most[lane.kind], wanted[2](lane));
    for (const lane of shown) {
      const button = make("button", {class: "open plain", "aria-pressed": String(lane === now)},
        make("span", {class: "name"}, lane_title(lane)));
      button.onclick = () => choose(lane);
      const row = make("tr", {class: lane === now ? "chosen" : null}, make("th", {scope: "row"},
        button, lane.refused ? make("em", {}, "✕ refused") : null,
        lane.unfinished ? make("em", {class: "kind"}, "unfinished") : null,
        lane.thread ? make("span", {class: "where"}, lane.thread) : null));
      for (const column of COLUMNS) {
        const cell = make("td", {class: "n", title: count_text(column[2](lane))},
          column[3](column[2](lane)));
        if (column === wanted)
          cell.style.setProperty("--share", (100 * column[2](lane)) / most[lane.kind] + "%");
        row.append(cell);
      }
      body.append(row);
    }
    table.textContent = "";
    table.append(make("thead", {}, head), body);
    more.hidden = shown.length === list.length;
    more.textContent = "Show all " + list.length + " lanes";
  }

  function describe() {
    const lanes = page.data.lanes, groups = page.space().groups, now = page.lane();
    const listed = lanes.list.filter((l) => l.kind === "request").length;
    let text = "";
    if (lanes.begun)
      text = count_text(lanes.begun) + (lanes.begun === 1 ? " request" : " requests") +
        ", at most " + count_text(lanes.at_once) + " at once. ";
    if (lanes.more)
      text += "The " + count_text(listed) + " that were refused, held or left most or came last " +
        "have a lane; the other " + count_text(lanes.more) + " allocated " +
        size_text(groups ? groups.more.total : 0) + " of " + page.space().name + " and left " +
        size_text(groups ? groups.more.moment : 0) + " behind. ";
    text += now ? "Selected: " + lane_title(now) + (page.filter()
      ? "; the flame graph and the call sites show it alone."
      : "; which call sites it used is not in this page.") : "Select a lane, and the flame graph and the call sites show it alone.";
    says.textContent = text;
    if (now) {
      const clear = make("button", {class: "small"}, "Show all work");
      clear.onclick = () => state.set({only: null, node: null});
      says.append(" ", clear);
    }
    const top = view.list.reduce((a, b) => (!a || held_by(b).peak > held_by(a).peak ? b : a), null);
    pane.canvas.setAttribute("aria-label", "Lanes in time: " + count_text(view.list.length) +
      " of " + page.space().name + (top ? ", the one that held most is " + lane_title(top) + " with " +
        size_text(held_by(top).peak) : "") +
      ". Arrow keys move, Enter selects, Escape clears; the table below has the same.");
  }

  function draw() {
    prepare();
    pane.size(view.tall, Math.max(200, Math.min(560, Math.round(innerHeight * 0.6))));
    if (cursor) cursor = drawn.find((d) => d.lane === cursor.lane) || null;
    const now = drawn.find((d) => d.lane === page.lane());
    pane.select(now ? rect_of(now) : null);
    pane.point(null);
    draw_table();
    describe();
    pane.redraw();
  }

  more.onclick = () => {
    all = true;
    draw_table();
  };
  window.addEventListener("beforeprint", pane.draw);
  keys.push(["↑ ↓ ← →", "in the lanes: the next one; Enter shows its memory alone, Esc all", null]);
  return draw;
}

views.push({id: "lanes", title: "Requests and threads", shows: (space) => !!space.groups,
  make: Lanes, own: ["lanes"]});
