/* timeline.js - a space's bytes over the run, its end once more, and the brush that selects a range
 * of slices. */

/* Where a space of a process that still runs is going, as the first screen says it: times in ns,
 * `full` in bytes. null: no trend, or another process is shown. */
function prospect_of(space, number) {
  const all = number ? [] : document.querySelectorAll("#verdict .prospect");
  const box = [...all].find((p) => p.dataset.space === space.name);
  if (!box) return null;
  const d = box.dataset, now = Number(d.now), at = (seconds) => now + Number(seconds) * 1e9;
  const latest = d.latest ? at(d.latest) : Infinity, expected = at(d.expected);
  /* The crossing is shown, unless the run would become too narrow to be read. */
  const far = 1.1 * (Number.isFinite(latest) ? latest - now : 2 * (expected - now));
  const ahead = Math.min(far, Math.max(1.15 * (expected - now), 3 * now), 10 * now);
  return {now, live: Number(d.live), full: Number(d.live) + Number(d.left), expected,
    soonest: at(d.soonest), latest, until: now + ahead, text: box.textContent};
}

function Timeline(root, page) {
  const plots = make("div", {class: "plots"});
  const note = make("p", {class: "range", "aria-live": "polite"});
  const legend = make("ul", {class: "legend"});
  const whole = Plot("whole", "The whole run"), late = Plot("late", "Its end, finer");
  /* From the top: phases, requests if there are any, and the words of what failed. */
  const PHASES = 4, REQUESTS = 21, LANES = 14, LINE = 14;
  const requests = page.data.marks.some((m) => m.kind === "request");
  const inset = {left: 62, right: 8, top: requests ? 36 + LANES : 36, bottom: 22};
  let drag = null, cursor = null, wanted = false;

  const by = make("button", {class: "small by", title: "c"});
  by.onclick = () => state.set({by: page.by_class() ? "site" : null}, true);
  keys.push(["c", "colours by class or by call site", () => by.hidden || by.click(), root]);
  plots.append(whole.box, late.box);
  root.append(plots, note, by, legend);

  function Plot(id, title) {
    const canvas = make("canvas", {id, tabindex: "0", role: "img"});
    const box = make("figure", {class: "plot " + id}, make("figcaption", {}, title), canvas);
    return {box, canvas};
  }

  function top_of(space) {
    let top = space.peak;
    if (space.limit && space.limit < 4 * space.peak) top = Math.max(top, space.limit);
    if (space.level) for (const v of space.level.at) if (v < 4 * space.peak) top = Math.max(top, v);
    const ahead = prospect(space);
    if (ahead && ahead.full < 20 * space.peak) top = Math.max(top, ahead.full);
    return (top || 1) * 1.05;
  }

  function prospect(space) {
    return prospect_of(space, process_number());
  }

  /* until: the right end, which lies beyond the curve's where there is a forecast. */
  function scale(curve, width, height, top, until) {
    const w = width - inset.left - inset.right, h = height - inset.top - inset.bottom;
    return {
      x: (ns) => inset.left + (w * (ns - curve.from)) / (until - curve.from),
      y: (bytes) => inset.top + h - (h * bytes) / top,
      time: (x) => curve.from + ((until - curve.from) * (x - inset.left)) / w,
      until, floor: inset.top + h, left: inset.left, right: inset.left + w,
    };
  }

  /* The words of a plot, none over another: what finds no free line is left out. The first to come
   * has the best place. */
  function Words(plot, width) {
    const taken = [];
    plot.canvas.words = taken;
    const free = (box) => box.x >= 0 && box.x + box.width <= width &&
      taken.every((t) => box.x >= t.x + t.width + 4 || t.x >= box.x + box.width + 4 ||
        box.y >= t.y + t.height || t.y >= box.y + box.height);
    return {
      /* align: as of a canvas; y: the middle; further: other middles to try; plain: on a band, which
       * needs no border around the words. */
      put(g, text, x, y, align, further, plain) {
        const wide = g.measureText(text).width, left = {left: 0, center: 0.5, right: 1}[align];
        for (const middle of [y, ...(further || [])]) {
          const box = {text, x: x - wide * left, y: middle - LINE / 2, width: wide, height: LINE};
          if (!free(box)) continue;
          taken.push(box);
          g.textAlign = "left";
          g.textBaseline = "middle";
          g.strokeStyle = css("--card");
          g.lineWidth = 3;
          g.lineJoin = "round";
          if (!plain) g.strokeText(text, box.x, middle);
          g.fillText(text, box.x, middle);
          return true;
        }
        return false;
      },
    };
  }

  function axes(g, s, curve, top, width, words) {
    g.strokeStyle = css("--line");
    g.fillStyle = css("--dim");
    g.lineWidth = 1;
    for (const v of ticks(top, 6, 2)) {
      const y = Math.round(s.y(v)) + 0.5;
      g.beginPath();
      g.moveTo(s.left, y);
      g.lineTo(s.right, y);
      g.stroke();
      words.put(g, size_text(v).replace(/\.0+ /, " "), s.left - 6, y, "right");
      g.strokeStyle = css("--line");
      g.lineWidth = 1;
    }
    const span = s.until - curve.from, most = Math.max(2, Math.floor(width / 110));
    for (const v of ticks(span, most, 10)) {
      const x = s.x(curve.from + v);
      const align = x > s.right - 30 ? "right" : v === 0 ? "left" : "center";
      words.put(g, time_text(curve.from + v), Math.min(x, s.right), s.floor + 12, align);
    }
  }

  /* What the areas are: classes of the ledger, or the largest call sites; the rest comes last. */
  function bands(curve) {
    const space = page.space(), list = page.by_class() ? curve.classes : curve.groups;
    return list.map((values, k) => {
      if (page.by_class())
        return {values, colour: class_colour(k), title: page.data.run.classes[k] || "other",
          note: ""};
      const place = k < GROUPS - 1 ? space.places.list[k] : null;
      return {values, colour: group_colour(k), title: place ? place.name : "the rest",
        note: place ? where_text(place) + (place.part ? " in " + place.part : "") : "",
        class: place && place.class};
    }).filter((band) => band.values.some((v) => v > 0));
  }

  /* Areas from the largest up; a point for each half pixel at most. */
  function areas(g, s, curve) {
    const n = curve.count, base = new Float64Array(n);
    const xs = new Float64Array(n);
    for (let i = 0; i < n; i++) xs[i] = s.x(curve.from + ((curve.until - curve.from) * (i + 1)) / n);
    for (const {values, colour} of bands(curve)) {
      g.beginPath();
      g.moveTo(s.left, s.y(base[0]));
      let drawn = -1;
      for (let i = 0; i < n; i++) {
        if (xs[i] - drawn < 0.5 && i < n - 1) continue;
        g.lineTo(xs[i], s.y(base[i] + values[i]));
        drawn = xs[i];
      }
      drawn = Infinity;
      for (let i = n - 1; i >= 0; i--) {
        if (drawn - xs[i] < 0.5 && i > 0) continue;
        g.lineTo(xs[i], s.y(base[i]));
        drawn = xs[i];
      }
      g.closePath();
      g.fillStyle = colour;
      g.fill();
      for (let i = 0; i < n; i++) base[i] += values[i];
    }
    g.globalAlpha = 0.6;
    line(g, s, curve, curve.most, css("--fg"), []);
    g.globalAlpha = 1;
  }

  function line(g, s, curve, values, colour, dash) {
    let begun = false, before = 0;
    g.beginPath();
    for (let i = 0; i < values.length; i++) {
      const x = s.x(curve.from + ((curve.until - curve.from) * (i + 1)) / values.length);
      if (dash.length && !values[i]) continue; /* not read then: it is as it was */
      if (begun && dash.length) g.lineTo(x, s.y(before));
      if (begun) g.lineTo(x, s.y(values[i]));
      else g.moveTo(dash.length ? x : s.left, s.y(values[i]));
      begun = true;
      before = values[i];
    }
    g.setLineDash(dash);
    g.strokeStyle = colour;
    g.lineWidth = dash.length ? 1.2 : 0.9;
    g.stroke();
    g.setLineDash([]);
  }

  function limit(g, s, space, top, words) {
    if (!space.limit) return;
    const y = space.limit <= top ? Math.round(s.y(space.limit)) + 0.5 : inset.top + 0.5;
    const text = (space.limit <= top ? "limit " : "↑ limit ") + size_text(space.limit);
    g.strokeStyle = g.fillStyle = css("--bad");
    if (space.limit <= top) {
      g.lineWidth = 1.5;
      g.setLineDash([7, 4]);
      g.beginPath();
      g.moveTo(s.left, y);
      g.lineTo(s.right, y);
      g.stroke();
      g.setLineDash([]);
    }
    const above = y - LINE / 2 - 1, below = y + LINE / 2 + 2;
    words.put(g, text, s.left + 6, space.limit <= top ? above : below, "left", [below, above]);
  }

  function marks(g, s, curve, words) {
    let lane = 0;
    /* What failed has its words first. */
    const list = [...page.data.marks].sort((a, b) => (b.kind === "failure") - (a.kind === "failure"));
    for (const m of list) {
      const from = Math.max(s.left, s.x(m.from)), until = Math.min(s.right, s.x(m.until));
      if (m.until < curve.from || m.from > curve.until) continue;
      if (m.kind === "phase") {
        g.fillStyle = css("--band");
        g.fillRect(from, PHASES, Math.max(1, until - from - 1), LINE);
        g.fillStyle = css("--fg");
        if (until - from > g.measureText(m.name || "").width + 8)
          words.put(g, m.name || "", from + 4, PHASES + LINE / 2 + 0.5, "left", [], true);
      } else if (m.kind === "request") {
        g.fillStyle = css("--request");
        g.fillRect(from, REQUESTS + 3 * (lane++ % 4), Math.max(1.5, until - from), 2);
      } else if (m.kind === "failure") {
        g.fillStyle = g.strokeStyle = css("--bad");
        g.lineWidth = 1.5;
        g.beginPath();
        g.moveTo(from, inset.top - 2);
        g.lineTo(from, s.floor);
        g.stroke();
        const text = "✕ " + (m.bytes ? "refused " + size_text(m.bytes) : "failed");
        const half = g.measureText(text).width / 2;
        words.put(g, text, Math.max(s.left + half, Math.min(from, s.right - half)),
          inset.top - 3 - LINE / 2, "center", [s.floor - LINE]);
      } else if (m.kind === "recovered") {
        g.fillStyle = css("--open");
        g.beginPath();
        g.moveTo(from - 4, inset.top - 8);
        g.lineTo(from + 4, inset.top - 8);
        g.lineTo(from, inset.top);
        g.fill();
      }
    }
  }

  /* The time that a checkpoint replaced: only the blocks that outlived it are in the curve. */
  function summarised(g, s, curve, words) {
    for (const m of page.data.marks) {
      if (m.kind !== "checkpoint" || m.from > curve.until || m.until < curve.from) continue;
      const from = Math.max(s.left, s.x(m.from)), until = Math.min(s.right, s.x(m.until));
      const text = "summarised by a checkpoint: only what outlived it";
      g.globalAlpha = 0.5;
      g.fillStyle = css("--band");
      g.fillRect(from, inset.top, until - from, s.floor - inset.top);
      g.globalAlpha = 1;
      g.fillStyle = css("--dim");
      const middle = inset.top + 30;
      if (until - from > g.measureText(text).width + 12)
        words.put(g, text, from + 6, middle, "left", [middle + LINE, middle + 2 * LINE]);
    }
  }

  function selection(g, s, curve) {
    const r = drag || page.range();
    if (!r) return;
    const slice = page.data.run.end / page.slices();
    const from = Math.max(s.left, s.x(r.from * slice)), to = Math.min(s.right, s.x(r.to * slice));
    g.fillStyle = css("--shade");
    if (from > s.left) g.fillRect(s.left, inset.top, from - s.left, s.floor - inset.top);
    if (to < s.right)
      g.fillRect(Math.max(s.left, to), inset.top, s.right - Math.max(s.left, to),
        s.floor - inset.top);
    if (to <= s.left || from >= s.right) return; /* beside this stretch */
    g.strokeStyle = css("--accent");
    g.lineWidth = 2;
    g.strokeRect(from, inset.top, Math.max(1, to - from), s.floor - inset.top);
  }

  /* From now on: the band between the soonest and the latest, the expected way, and the level at
   * which the limit is reached. */
  function ahead_of(g, s, space, top, words) {
    const p = prospect(space);
    if (!p) return;
    const from = s.x(p.now), y = Math.round(s.y(p.full)) + 0.5;
    const latest = Number.isFinite(p.latest) ? s.x(p.latest) : null;
    g.save();
    g.beginPath();
    g.rect(s.left, inset.top, s.right - s.left, s.floor - inset.top);
    g.clip();
    g.fillStyle = g.strokeStyle = css("--bad");
    g.globalAlpha = 0.18;
    g.beginPath();
    g.moveTo(from, s.y(p.live));
    g.lineTo(s.x(p.soonest), y);
    if (latest === null) {
      g.lineTo(Math.max(s.right, s.x(p.soonest)), y);
      g.lineTo(s.right, s.y(p.live));
    } else g.lineTo(latest, y);
    g.closePath();
    g.fill();
    g.globalAlpha = 1;
    g.lineWidth = 1.5;
    g.setLineDash([2, 3]);
    g.beginPath();
    g.moveTo(from, s.y(p.live));
    g.lineTo(s.x(p.expected), y);
    g.stroke();
    if (Math.abs(y - s.y(space.limit || 0)) > LINE) { /* else the limit's line is there */
      g.setLineDash([7, 4]);
      g.beginPath();
      g.moveTo(from, y);
      g.lineTo(s.right, y);
      g.stroke();
    }
    g.setLineDash([]);
    g.beginPath();
    g.arc(s.x(p.expected), y, 4, 0, 7);
    g.fill();
    g.restore();
    g.strokeStyle = css("--dim");
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(from, inset.top);
    g.lineTo(from, s.floor);
    g.stroke();
    g.fillStyle = css("--dim");
    words.put(g, "now", from + 4, inset.top - 3 - LINE / 2, "left", [s.floor - LINE]);
    g.fillStyle = css("--bad");
    const below = p.full <= top ? y + LINE / 2 + 4 : inset.top + LINE;
    words.put(g, "full at " + size_text(p.full), Math.max(from + 4, s.left + 4), below, "left",
      [below + LINE + 2, below + 2 * LINE + 4]);
  }

  /* The moment of the map that is shown below. */
  function map_moment(g, s, curve, words) {
    const ns = page.map_ns();
    if (ns === null || ns < curve.from || ns > curve.until) return;
    const x = s.x(ns);
    g.strokeStyle = g.fillStyle = css("--accent");
    g.lineWidth = 1.5;
    g.beginPath();
    g.moveTo(x, inset.top);
    g.lineTo(x, s.floor);
    g.stroke();
    g.beginPath();
    g.moveTo(x - 5, s.floor + 5);
    g.lineTo(x + 5, s.floor + 5);
    g.lineTo(x, s.floor - 2);
    g.fill();
    words.put(g, "map", x, inset.top - 3 - LINE / 2, "center", [s.floor - LINE]);
  }

  function draw_plot(plot, curve, space, top) {
    const {g, width, height} = canvas_context(plot.canvas);
    const ahead = plot === whole ? prospect(space) : null;
    const s = plot.scale = scale(curve, width, height, top,
      ahead ? Math.max(ahead.until, curve.until) : curve.until);
    plot.curve = curve;
    const words = Words(plot, width);
    axes(g, s, curve, top, width, words);
    areas(g, s, curve);
    if (space.level && plot === whole)
      line(g, s, curve, space.level.at, css("--level"), [2, 3]);
    selection(g, s, curve); /* below all words */
    marks(g, s, curve, words);
    limit(g, s, space, top, words);
    if (plot === whole) ahead_of(g, s, space, top, words);
    summarised(g, s, curve, words);
    map_moment(g, s, curve, words);
    if (cursor && cursor.plot === plot) {
      g.strokeStyle = css("--dim");
      g.lineWidth = 1;
      g.beginPath();
      g.moveTo(cursor.x, inset.top);
      g.lineTo(cursor.x, s.floor);
      g.stroke();
    }
  }

  function draw() {
    wanted = false;
    const space = page.space(), top = top_of(space);
    draw_plot(whole, space.curve, space, top);
    draw_plot(late, space.late, space, top);
    const what = space.name + ": at most " + size_text(space.peak) + " after " +
      time_text(space.peak_ns) + (space.limit ? ", limit " + size_text(space.limit) : "") +
      (prospect(space) ? ". " + prospect(space).text : "");
    late.box.firstChild.textContent =
      page.data.run.at === "failure" ? "Before the failure, finer" : "Its end, finer";
    whole.canvas.setAttribute("aria-label", "Bytes over time. " + what +
      ". Arrow keys move, with Shift they select; the call sites below follow.");
    late.canvas.setAttribute("aria-label", "The end of the run, finer. " + what);
    describe(space);
  }

  function redraw() {
    if (wanted) return;
    wanted = true;
    requestAnimationFrame(draw);
  }

  function describe(space) {
    const r = page.range(), slice = page.data.run.end / page.slices();
    note.textContent = "";
    if (r) {
      const held = held_in_range(space, r);
      const clear = make("button", {class: "small"}, "Clear");
      clear.onclick = () => state.set({from: null, to: null});
      note.append(make("b", {}, time_text(r.from * slice) + " – " + time_text(r.to * slice)),
        ": " + size_text(held.kept) + " born in it and alive at its end, " +
        size_text(held.born) + " born, " + size_text(held.died) + " released. ", clear);
    } else {
      note.append("Drag over the curve to select a time range; the call sites follow.");
    }
    by.textContent = page.by_class() ? "Colour by call site" : "Colour by class";
    by.hidden = !page.by_class() && !state.get("by");
    legend.textContent = "";
    for (const band of bands(space.curve)) {
      const dot = make("i", {class: "dot"});
      dot.style.background = band.colour;
      legend.append(make("li", {}, dot, band.title, make("small", {}, band.note),
        band.class ? make("em", {class: "kind"}, band.class) : null));
    }
    if (space.level) legend.append(make("li", {}, make("i", {class: "dash"}), space.level.name));
    if (prospect(space))
      legend.append(make("li", {}, make("i", {class: "dot ahead"}), "where it is going: ",
        make("small", {}, "soonest to latest")));
  }

  function explain(plot, x, client_x, client_y) {
    const space = page.space(), curve = plot.curve, ns = plot.scale.time(x);
    const share = (ns - curve.from) / (curve.until - curve.from);
    if (share < 0 || share > 1) {
      tip.hide();
      return;
    }
    const i = Math.min(curve.count - 1, Math.max(0, Math.floor(share * curve.count)));
    const lines = [time_text(ns) + " · " + size_text(curve.last[i])];
    if (curve.most[i] > curve.least[i])
      lines.push("from " + size_text(curve.least[i]) + " to " + size_text(curve.most[i]));
    const held = bands(curve).filter((band) => band.values[i] > 0);
    held.sort((a, b) => b.values[i] - a.values[i]);
    for (const band of held.slice(0, 6))
      lines.push([band.colour, band.title, size_text(band.values[i])]);
    const near = (curve.until - curve.from) / 100;
    for (const m of page.data.marks)
      if (m.kind !== "checkpoint" && ns >= m.from - near && ns <= m.until + near &&
          lines.length < 10)
        lines.push(m.kind + (m.name ? " " + m.name : "") + (m.bytes ? ", " + size_text(m.bytes) : ""));
    tip.show(lines, client_x, client_y);
  }

  function slice_at(x) {
    const share = whole.scale.time(x) / page.data.run.end;
    return Math.min(page.slices(), Math.max(0, share * page.slices()));
  }

  function select(range) {
    state.set({from: range ? range.from : null, to: range ? range.to : null});
  }

  for (const plot of [whole, late]) {
    plot.canvas.addEventListener("pointermove", (event) => {
      cursor = {plot, x: event.offsetX};
      if (drag && plot === whole) {
        const at = slice_at(event.offsetX);
        drag.from = Math.floor(Math.min(drag.start, at));
        drag.to = Math.max(drag.from + 1, Math.ceil(Math.max(drag.start, at)));
      }
      explain(plot, event.offsetX, event.clientX, event.clientY);
      redraw();
    });
    plot.canvas.addEventListener("pointerleave", () => {
      cursor = null;
      tip.hide();
      redraw();
    });
  }
  whole.canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const at = slice_at(event.offsetX);
    whole.canvas.setPointerCapture(event.pointerId);
    drag = {start: at, x: event.offsetX, from: Math.floor(at), to: Math.floor(at) + 1};
  });
  whole.canvas.addEventListener("pointerup", (event) => {
    const done = drag;
    drag = null;
    if (!done) return;
    if (Math.abs(event.offsetX - done.x) < 4) select(null);
    else select({from: done.from, to: Math.min(page.slices(), done.to)});
    redraw();
  });
  whole.canvas.addEventListener("keydown", (event) => {
    const steps = {ArrowLeft: -1, ArrowRight: 1};
    const count = page.slices(), r = page.range();
    if (event.key === "Escape" && r) select(null);
    else if (event.key in steps && event.shiftKey) {
      const old = r || {from: count - 1, to: count};
      const from = Math.max(0, Math.min(count - 1, old.from + steps[event.key]));
      select({from, to: Math.max(from + 1, old.to)});
    } else if (event.key in steps) {
      const width = whole.scale.right - whole.scale.left;
      const x = (cursor ? cursor.x : whole.scale.right) + (steps[event.key] * width) / count;
      cursor = {plot: whole, x: Math.max(whole.scale.left, Math.min(whole.scale.right, x))};
      const box = whole.canvas.getBoundingClientRect();
      explain(whole, cursor.x, box.left + cursor.x, box.top + 40);
      redraw();
    } else return;
    event.preventDefault();
  });
  whole.canvas.addEventListener("blur", () => tip.hide());
  keys.push(["← →", "in the curve: move; with Shift select a range; Esc clears it", null]);
  return {draw, redraw};
}

/* What a space's places did in a range of slices. */
function range_of_place(space, place, range) {
  const out = {kept: 0, kept_count: 0, born: 0, died: 0, live: 0};
  for (const [born, died, bytes, count] of space.slices.sites.get(place) || []) {
    if (born >= range.from && born < range.to) {
      out.born += bytes;
      if (died >= range.to) {
        out.kept += bytes;
        out.kept_count += count;
      }
    }
    if (died >= range.from && died < range.to) out.died += bytes;
    if (born < range.to && died >= range.to) out.live += bytes;
  }
  return out;
}

function held_in_range(space, range) {
  const sum = {kept: 0, born: 0, died: 0, live: 0};
  for (const place of space.slices.sites.keys()) {
    const one = range_of_place(space, place, range);
    for (const key in sum) sum[key] += one[key];
  }
  return sum;
}
