/* curves.js - the bytes of both sides over time, laid over each other phase by phase, so that runs
 * of other lengths are seen at the same work. What lies between the curves is the difference. */

function Curves(root, page) {
  const canvas = make("canvas", {id: "curves", tabindex: "0", role: "img"});
  const note = make("p", {class: "hint"});
  const inset = {left: 62, right: 10, top: 30, bottom: 40};
  let cursor = null, wanted = false, drawn = null;

  root.append(make("figure", {class: "plot"}, canvas), make("ul", {class: "legend"},
    make("li", {}, make("i", {class: "dash line-a"}), "A"),
    make("li", {}, make("i", {class: "dash line-b"}), "B"),
    make("li", {}, make("i", {class: "dot up"}), "▲ B holds more"),
    make("li", {}, make("i", {class: "dot down"}), "▼ B holds less")), note);

  function top_of(space) {
    let top = Math.max(space.a.peak, space.b.peak, 1);
    for (const side of [space.a, space.b])
      if (side.limit && side.limit < 2 * top) top = Math.max(top, side.limit);
    return top * 1.06;
  }

  /* Where each phase lies: as wide as it took on the side where it took longer, but with room for
   * its name. */
  function layout(space, width, height) {
    const w = width - inset.left - inset.right, list = space.phases;
    const least = Math.min(76, w / Math.max(1, list.length));
    const long = list.map((p) => Math.max(p.a ? p.a.length : 0, p.b ? p.b.length : 0));
    const all = long.reduce((sum, v) => sum + v, 0) || 1;
    const room = w - least * list.length, top = top_of(space);
    const floor = height - inset.bottom;
    let at = inset.left;
    return {
      left: inset.left, right: width - inset.right, floor, top,
      y: (bytes) => floor - ((floor - inset.top) * bytes) / top,
      phases: list.map((phase, i) => {
        const wide = least + (room * long[i]) / all, from = at;
        at += wide;
        return {phase, from, wide};
      }),
    };
  }

  /* A side's line as points [x, y], a step for each point of a phase. */
  function path(s, p, side) {
    const c = p.phase[side], out = [];
    if (!c) return out;
    for (let i = 0; i < c.known; i++) {
      const y = s.y(c.at[i]);
      out.push([p.from + (p.wide * i) / p.phase.points, y],
        [p.from + (p.wide * (i + 1)) / p.phase.points, y]);
    }
    return out;
  }

  function between(g, s, p) {
    const {a, b} = p.phase;
    if (!a || !b) return;
    for (let i = 0; i < Math.min(a.known, b.known); i++) {
      if (a.at[i] === b.at[i]) continue;
      const x = Math.round(p.from + (p.wide * i) / p.phase.points);
      const end = Math.round(p.from + (p.wide * (i + 1)) / p.phase.points);
      const y = s.y(Math.max(a.at[i], b.at[i]));
      g.fillStyle = css(b.at[i] > a.at[i] ? "--up-area" : "--down-area");
      g.fillRect(x, y, end - x, s.y(Math.min(a.at[i], b.at[i])) - y);
    }
  }

  function line(g, points, colour, wide, dash) {
    g.beginPath();
    points.forEach(([x, y], i) => (i ? g.lineTo(x, y) : g.moveTo(x, y)));
    g.strokeStyle = colour;
    g.lineWidth = wide;
    g.setLineDash(dash);
    g.stroke();
    g.setLineDash([]);
  }

  function limits(g, s, space) {
    const seen = new Set();
    for (const side of ["a", "b"]) {
      const limit = space[side].limit;
      if (!limit || limit > s.top || seen.has(limit)) continue;
      seen.add(limit);
      const y = Math.round(s.y(limit)) + 0.5;
      line(g, [[s.left, y], [s.right, y]], css("--bad"), 1.5, [7, 4]);
      g.fillStyle = css("--bad");
      g.textAlign = "left";
      g.textBaseline = "bottom";
      g.fillText("limit " + (space.a.limit === space.b.limit ? "" : "of " + side.toUpperCase() +
        " ") + size_text(limit), s.left + 6, y - 2);
    }
  }

  /* When each side is compared: a letter on its curve. */
  function moments(g, s, space) {
    g.textAlign = "center";
    g.textBaseline = "middle";
    for (const side of ["a", "b"])
      for (const {phase, from, wide} of s.phases) {
        const c = phase[side], time = space[side].time;
        if (!c || !space[side].present || time < c.from || time > c.from + c.length) continue;
        const share = c.length ? (time - c.from) / c.length : 0;
        const i = Math.min(c.known - 1, Math.floor(share * phase.points));
        const x = from + wide * share, y = s.y(c.at[i]);
        g.fillStyle = css("--line-" + side);
        g.beginPath();
        g.arc(x, y, 8, 0, 2 * Math.PI);
        g.fill();
        g.fillStyle = css("--card");
        g.fillText(side.toUpperCase(), x, y + 0.5);
        break;
      }
  }

  function names(g, s) {
    g.textBaseline = "top";
    for (const {phase, from, wide} of s.phases) {
      g.fillStyle = css("--band");
      g.fillRect(from, 6, Math.max(1, wide - 2), 16);
      g.fillStyle = css("--fg");
      g.textAlign = "left";
      g.fillText(fitted(g, phase.name || "", wide - 10, ""), from + 5, 8);
      g.fillStyle = css("--dim");
      let y = s.floor + 5;
      for (const side of ["a", "b"]) {
        const c = phase[side], name = side.toUpperCase() + " ";
        g.fillText(fitted(g, name + (c ? time_text(c.length) : "–"), wide - 8, ""), from + 3, y);
        y += 15;
      }
      if (from > s.left) line(g, [[from - 1, 6], [from - 1, s.floor]], css("--line"), 1, []);
    }
  }

  function draw() {
    wanted = false;
    const space = page.space(), {g, width, height} = canvas_context(canvas);
    const s = drawn = layout(space, width, height);
    byte_grid(g, s, s.top);
    for (const p of s.phases) between(g, s, p);
    const whole = (side) => s.phases.flatMap((p) => path(s, p, side));
    line(g, whole("a"), css("--line-a"), 2, [5, 3]);
    line(g, whole("b"), css("--line-b"), 2, []);
    limits(g, s, space);
    names(g, s);
    moments(g, s, space);
    if (cursor !== null) {
      const x = x_of(s, cursor);
      if (x !== null) line(g, [[x, inset.top - 4], [x, s.floor]], css("--dim"), 1, []);
    }
    describe(space);
  }

  function describe(space) {
    const parts = space.phases.map((p) => p.name + ": " + ["a", "b"].map((side) =>
      side.toUpperCase() + " at most " +
      (p[side] ? size_text(p[side].at.reduce((m, v) => Math.max(m, v), 0)) : "not there"))
      .join(", "));
    canvas.setAttribute("aria-label", "Live bytes of " + space.name + " on both sides, by phase. " +
      parts.join("; ") + ". Arrow keys move.");
    note.textContent = "A letter on a curve is the moment that is compared. " +
      (page.data.sides.one_run ? "It is one run, as far as each moment needs it."
        : space.phases.length > 1
          ? "Phases of the same name lie over each other; each is stretched to the longer one."
          : "Both runs from their start to their end; the shorter one is stretched.");
  }

  /* The cursor is a number of points from the left. */
  function x_of(s, at) {
    for (const p of s.phases) {
      if (at < p.phase.points) return p.from + (p.wide * (at + 0.5)) / p.phase.points;
      at -= p.phase.points;
    }
    return null;
  }

  function point_at(x) {
    let at = 0;
    for (const p of drawn.phases) {
      if (x < p.from + p.wide)
        return at + Math.max(0, Math.min(p.phase.points - 1,
          Math.floor(((x - p.from) / p.wide) * p.phase.points)));
      at += p.phase.points;
    }
    return at - 1;
  }

  function lines_of(at) {
    for (const phase of page.space().phases) {
      if (at >= phase.points) {
        at -= phase.points;
        continue;
      }
      const lines = [phase.name];
      const v = {};
      for (const side of ["a", "b"]) {
        const c = phase[side];
        v[side] = c && at < c.known ? c.at[at] : null;
        lines.push([css("--line-" + side), side.toUpperCase() + (c ? " after " +
          time_text(c.from + (c.length * at) / phase.points) : ""),
        v[side] === null ? "not known" : size_text(v[side])]);
      }
      if (v.a !== null && v.b !== null) lines.push("B has " + change_text(v.b - v.a));
      return lines;
    }
    return [""];
  }

  function redraw() {
    if (wanted) return;
    wanted = true;
    requestAnimationFrame(draw);
  }

  function show(at, x, y) {
    cursor = at;
    tip.show(lines_of(at), x, y);
    redraw();
  }

  function hide() {
    cursor = null;
    tip.hide();
    redraw();
  }

  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    if (drawn) show(point_at(event.clientX - box.left), event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerleave", hide);
  canvas.addEventListener("blur", hide);
  canvas.addEventListener("keydown", (event) => {
    const all = page.space().phases.reduce((sum, p) => sum + p.points, 0);
    const step = {ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -all,
      End: all}[event.key];
    if (event.key === "Escape") hide();
    else if (step && drawn && all) {
      const at = Math.max(0, Math.min(all - 1, cursor === null ? (step < 0 ? all - 1 : 0)
        : cursor + step));
      const box = canvas.getBoundingClientRect();
      show(at, box.left + x_of(drawn, at), box.top + inset.top);
    } else return;
    event.preventDefault();
  });
  keys.push(["← →", "in the curves: earlier and later; Page keys by more", null]);
  return {draw, redraw};
}
