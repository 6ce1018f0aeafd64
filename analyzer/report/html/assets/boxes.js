/* boxes.js - a tree of stacks as rows of boxes: laid out, drawn, pointed at, and walked through by
 * keys. What a box means is the view's affair. */

const ROW = 19; /* pixels a frame is high */
const LEAST_WIDE = 0.5; /* pixels; what is thinner is drawn as one grey box with its neighbours */

/* view: what is shown and how. A node is named by its part and number. `search` is frames.js's;
 *   built() -> {parts, two, rows}: what arrange() made, one part or the sandwich's two
 *   zoomed(), zoom(node, quietly), enter(part, node), key(key, cursor): a key that it takes
 *   styles: how many; style_of(part, node); fill(g, boxes, style): draw boxes of one style
 *   name_of, frame_of, second_of (a text beside the name), is_own, lines_of (part, node)
 *   resized(): the width has changed */
function Boxes(id, search, view) {
  const pane = Pane(id, paint, () => view.resized()), now = view.built;
  let drawn = [], cursor = null;

  /* Where a node is drawn; null: not at all. */
  function rect_of(part, node) {
    const a = now().parts[part], of = view.zoomed();
    if (a.place[node] < a.place[of] || a.place[node] >= a.behind[a.place[of]]) return null;
    const scale = pane.width() / (a.value[of] || 1);
    const row = a.tree.depth[node] - a.tree.depth[of];
    return {x: (a.x[node] - a.x[of]) * scale, width: a.value[node] * scale, height: ROW - 1,
      y: ROW * (now().two ? (part ? -row : row) + now().rows[1] : row)};
  }

  /* Boxes by style; what is too thin becomes gaps. */
  function boxes(part, width, top, bottom, out) {
    const a = now().parts[part], of = view.zoomed(), {tree, value, x, order, behind} = a;
    const scale = width / (value[of] || 1), base = now().two ? now().rows[1] : 0;
    const begin = x[of], depth = tree.depth[of], end = behind[a.place[of]];
    let gap = null;
    for (let p = a.place[of]; p < end;) {
      const node = order[p], wide = value[node] * scale, row = tree.depth[node] - depth;
      const left = (x[node] - begin) * scale, y = ROW * (part ? base - row : base + row);
      if (part ? y + ROW < top : y > bottom) {
        p = behind[p];
      } else if (wide < LEAST_WIDE) {
        if (gap && gap.y === y && left - gap.right < 0.01) gap.right = left + wide;
        else out.gaps.push(gap = {x: left, y, right: left + wide});
        p = behind[p];
      } else {
        if (y + ROW >= top && y <= bottom && !(part && node === 0)) {
          out.styles[view.style_of(part, node)].push(drawn.length);
          drawn.push({part, node, x: left, y, width: wide});
        }
        p++;
      }
    }
  }

  function paint(g, width, height, top) {
    const out = {gaps: [], styles: Array.from({length: view.styles}, () => [])};
    drawn = [];
    boxes(0, width, top, top + height, out);
    if (now().two) boxes(1, width, top, top + height, out);
    g.translate(0, -top);
    out.styles.forEach((list, style) => {
      if (list.length) fill(g, list, style);
    });
    g.globalAlpha = 1;
    g.fillStyle = css("--r-small");
    for (const gap of out.gaps)
      if (gap.right - gap.x >= 0.1) g.fillRect(gap.x, gap.y, gap.right - gap.x, ROW - 1);
    labels(g);
    outline_found(g);
  }

  /* Only what is found, or only what is not, so that each is drawn with one alpha. */
  function fill(g, list, style) {
    for (const found of [true, false]) {
      g.globalAlpha = found ? 1 : 0.3;
      view.fill(g, list.map((i) => drawn[i])
        .filter((d) => search.shows(d.part, d.node) === found), style);
    }
  }

  function labels(g) {
    const font = css("--font"), box = css("--box"), plain = css("--fg");
    g.textAlign = "left";
    g.textBaseline = "middle";
    for (const face of ["bold", ""]) {
      g.font = (face ? "600 " : "") + "12px " + font;
      for (const d of drawn) {
        if (d.width < 26) continue;
        const frame = view.frame_of(d.part, d.node), own = view.is_own(d.part, d.node);
        if (own !== !!face) continue;
        const shown = search.shows(d.part, d.node), y = d.y + ROW / 2;
        const left = d.x + (own ? 7 : 4), room = d.x + d.width - 4 - left;
        const name = view.name_of(d.part, d.node), text = fitted(g, name, room, face);
        if (!text) continue;
        g.globalAlpha = shown ? 1 : 0.75;
        g.fillStyle = frame && shown ? box : plain;
        g.fillText(text, left, y);
        if (text !== name) continue;
        const rest = view.second_of(d.part, d.node);
        const used = g.measureText(name).width + 8;
        if (!rest || fitted(g, rest, room - used, face) !== rest) continue;
        g.globalAlpha *= 0.75;
        g.fillText(rest, left + used, y);
      }
    }
    g.globalAlpha = 1;
  }

  function outline_found(g) {
    if (!search.text()) return;
    g.fillStyle = css("--fg");
    for (const d of drawn) {
      if (d.width < 4 || !search.found(d.part, d.node)) continue;
      const wide = d.width - 1, high = ROW - 1;
      g.fillRect(d.x, d.y, wide, 1.5);
      g.fillRect(d.x, d.y + high - 1.5, wide, 1.5);
      g.fillRect(d.x, d.y, 1.5, high);
      g.fillRect(d.x + wide - 1.5, d.y, 1.5, high);
    }
  }

  function at(event) {
    const p = pane.at(event);
    return drawn.find((d) => p.y >= d.y && p.y < d.y + ROW && p.x >= d.x && p.x < d.x + d.width);
  }

  function select(part, node) {
    let rect = rect_of(part, node);
    if (!now().two && (!rect || rect.width < 2)) {
      /* Too thin to be seen: zoom out or in until it is not. */
      const a = now().parts[part];
      let of = node;
      while (of > 0 && a.value[node] / a.value[a.tree.parent[of]] > 0.02) of = a.tree.parent[of];
      cursor = {part, node};
      view.zoom(of, true);
      rect = rect_of(part, node);
    }
    cursor = {part, node};
    pane.select(rect);
    if (!rect) return;
    pane.scroll_to(rect);
    const p = pane.on_screen(rect);
    tip.show(view.lines_of(part, node), p.x, p.y);
  }

  function step(key) {
    if (!cursor || !now().parts[cursor.part]) return select(0, view.zoomed());
    const {part, node} = cursor, a = now().parts[part];
    const out = part ? "ArrowDown" : "ArrowUp", down = part ? "ArrowUp" : "ArrowDown";
    if (key === out && (node !== view.zoomed() || (now().two && node)))
      select(part, a.tree.parent[node]);
    else if (key === out && now().two && !part && a.place[0] === 0) {
      const child = now().parts[1].children(0)[0];
      if (child !== undefined) select(1, child);
    } else if (key === down || (now().two && node === 0 && key === "ArrowDown")) {
      const of = node === 0 && key === "ArrowDown" ? 0 : part;
      const child = now().parts[of].children(node)[0];
      if (child !== undefined) select(of, child);
    } else if (key === "ArrowLeft" || key === "ArrowRight") {
      if (node === view.zoomed()) return;
      const list = a.children(a.tree.parent[node]);
      const next = list[list.indexOf(node) + (key === "ArrowRight" ? 1 : -1)];
      if (next !== undefined) select(part, next);
    }
  }

  pane.canvas.addEventListener("pointermove", (event) => {
    const d = at(event);
    pane.canvas.style.cursor = d ? "pointer" : "";
    pane.point(d ? {x: d.x, y: d.y, width: d.width, height: ROW - 1} : null);
    if (d) tip.show(view.lines_of(d.part, d.node), event.clientX, event.clientY);
    else tip.hide();
  });
  pane.canvas.addEventListener("pointerleave", () => {
    pane.point(null);
    tip.hide();
  });
  pane.canvas.addEventListener("click", (event) => {
    const d = at(event);
    if (!d) return;
    cursor = {part: d.part, node: d.node};
    view.enter(d.part, d.node);
  });
  pane.canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith("Arrow")) step(event.key);
    else if (event.key === "Enter")
      view.enter(cursor ? cursor.part : 0, cursor ? cursor.node : view.zoomed());
    else if (view.key && view.key(event.key, cursor)) { /* taken */ }
    else if (event.key === "Escape" && search.text()) state.set({find: null}, true);
    else if (event.key === "Escape" && view.zoomed()) view.zoom(0);
    else if (event.key === "Escape") tip.hide();
    else return;
    event.preventDefault();
  });
  pane.canvas.addEventListener("blur", () => tip.hide());
  search.on_step((step) => {
    const list = search.list();
    if (!list.length) return;
    const here = list.findIndex((one) =>
      cursor && one.part === cursor.part && one.node === cursor.node);
    const next = here < 0 && step < 0 ? list.length - 1 : here + step;
    const to = list[(next + list.length) % list.length];
    select(to.part, to.node);
  });

  /* How many rows of what can be seen. */
  function rows_of(part, of) {
    const a = now().parts[part], least = (a.value[of] / (pane.width() || 1)) * LEAST_WIDE;
    let rows = 1;
    for (let p = a.place[of]; p < a.behind[a.place[of]];) {
      const node = a.order[p];
      rows = Math.max(rows, a.tree.depth[node] - a.tree.depth[of] + 1);
      p = a.value[node] < least ? a.behind[p] : p + 1;
    }
    now().rows[part] = rows - 1;
    return rows;
  }

  return {
    pane, rows_of,
    rect_of_cursor: () => (cursor ? rect_of(cursor.part, cursor.node) : null),
    forget: () => (cursor = null),
  };
}
