/* flame.js - the flame graph: a space's stacks as boxes as wide as their bytes. */

const TABLE_FIRST = 12;

function Flame(root, page) {
  const frames = page.data.frames, functions = functions_of(frames);
  const styles = Uint8Array.from(frames, (f) => role_of(f) * SHADES + (hash_of(f.name) % SHADES));
  const layouts = Tabs("Layout", "flame", () => [["down", "Top down"], ["up", "Bottom up"],
    ["both", "Sandwich"]], layout);
  const measures = Choice("Measure", "measure", {}), whose = WorkFilter(page);
  const which = Choice("Frames", "frames", {node: null});
  const search = Search(frames);
  const crumbs = make("nav", {class: "crumbs", "aria-label": "Zoomed to"});
  const note = make("p", {class: "hint"});
  const boxes = Boxes("flame", search, {
    built: () => built, zoomed, zoom, enter, key, styles: ROLES.length * SHADES + 2, style_of, fill,
    name_of, frame_of, second_of, is_own, lines_of, resized: () => draw(),
  });
  const pane = boxes.pane;
  const legend = make("ul", {class: "legend roles"});
  const table = make("table", {class: "places functions"}), more = make("button", {class: "more"});
  let built = null, all = false, sorted = 2;

  root.append(make("div", {class: "row"}, layouts.box, whose.select, measures.select, which.select,
    ...search.parts), crumbs, pane.box, legend, note,
    make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Functions"}, table),
    more);
  ROLES.forEach(([id, title]) => legend.append(make("li", {},
    make("i", {class: "dot role " + id}), title)));
  legend.append(make("li", {}, make("i", {class: "dot role small"}), "too small to show"));

  /* The user's choices, from the address. */
  function layout() {
    const wanted = state.get("flame");
    return ["up", "both"].includes(wanted) ? wanted : "down";
  }

  function measure_list() {
    if (page.applied_range())
      return [["kept", "Born in the range, alive at its end"], ["live", "Live at its end"],
        ["born", "Born in it"], ["died", "Released in it"]];
    const at = page.data.run.at === "failure" ? "Live at the failure" : "Live at the peak";
    const list = [["moment", at], ["peak", "At " + page.whose() + "'s peak"],
      ["total", "Allocated in all"], ["count", "Blocks in all"],
      ["temporary", "Freed at once"]];
    const tree = source_of(page.space(), null).tree;
    return list.filter(([m], i) => tree[m][0] > 0 || i === 0);
  }

  function measure() {
    const known = measure_list().map((m) => m[0]), wanted = state.get("measure");
    if (known.includes(wanted)) return wanted;
    const range = page.applied_range();
    const first = range || source_of(page.space(), null).tree.moment[0] ? 0 : 1;
    return known[Math.min(first, known.length - 1)];
  }

  function value_text(v) {
    return measure() === "count" ? count_text(v) + (v === 1 ? " block" : " blocks") : size_text(v);
  }

  /* The trees of what is chosen, made when that changes. */
  function build() {
    const space = page.space(), range = page.applied_range(), m = measure();
    const source = source_of(space, range), python = source.python;
    const known = frame_list(python).map((f) => f[0]), wanted = state.get("frames");
    const frames_shown = known.includes(wanted) ? wanted : python ? "python" : "all";
    const kind = layout(), of = kind === "both" ? function_chosen(source, m, frames_shown) : -1;
    const key = [source.key, kind, frames_shown, kind === "up" ? m : "", of].join(" ");
    if (!built || built.key !== key) {
      built = {key, space, kind, of, frames_shown, python, tree: source.tree,
        measures: source.measures, mark: hash_of(key).toString(36), by_measure: new Map(),
        rows: [0, 0]};
      const shown = source.shown(frames_shown);
      if (kind === "both")
        built.two = trees_of(source.tree, source.measures, shown, functions, of);
      else if (kind === "up") built.one = tree_up(source.tree, source.measures, shown, m);
      else built.one = source.down(frames_shown);
      built.whole = source.down(frames_shown);
      boxes.forget();
    }
    if (built.measure !== m) {
      if (!built.by_measure.has(m))
        built.by_measure.set(m, {
          base: arrange(built.whole, m),
          parts: built.two ? [arrange(built.two.down, m), arrange(built.two.up, m)]
            : [built.kind === "down" ? null : arrange(built.one, m)],
        });
      const now = built.by_measure.get(m);
      if (!now.parts[0]) now.parts[0] = now.base;
      Object.assign(built, {measure: m}, now);
    }
    search.of(built);
  }

  /* The data's tree, or a range's, with what was made of it. */
  let sources = new Map();
  function source_of(space, range) {
    const filter = page.filter();
    const key = space.name + (filter ? " only " + filter.lane.index
      : range ? " " + range.from + " " + range.to : "");
    if (!sources.has(key)) {
      if (sources.size > 8) sources = new Map();
      const tree = filter ? lane_tree(space.tree, filter.held.nodes)
        : range ? range_tree(space, range) : space.tree, downs = new Map();
      const names = range ? IN_RANGE : MEASURES;
      const source = {key, tree, measures: names, python: has_python(tree, frames),
        shown: (which) => shown_frames(frames, which),
        down(which) {
          if (!downs.has(which)) downs.set(which, tree_down(tree, names, source.shown(which)));
          return downs.get(which);
        },
      };
      sources.set(key, source);
    }
    return sources.get(key);
  }

  /* The sandwich's function: the chosen one, else the one that has most itself. */
  function function_chosen(source, m, frames_shown) {
    const wanted = state.number("function", -1);
    if (Number.isInteger(wanted) && wanted >= 0 && wanted < frames.length) return functions[wanted];
    const list = function_sums(arrange(source.down(frames_shown), m), 0, functions);
    let best = null;
    for (const f of list) if (!best || f[2] > best[2]) best = f;
    return best ? best[0] : 0;
  }

  /* The node that is zoomed to; a link to a node of another tree is none. */
  function zoomed() {
    if (built.two) return 0;
    const [node, mark] = (state.get("node") || "").split(".");
    const n = Number(node), a = built.parts[0];
    return mark === built.mark && Number.isInteger(n) && n > 0 && n < a.tree.nodes &&
      a.place[n] >= 0 ? n : 0;
  }

  function zoom(node, quietly) {
    pane.to_top();
    tip.hide();
    state.set({node: node ? node + "." + built.mark : null}, quietly);
  }

  function look_at(frame) {
    state.set({flame: "both", function: functions[frame], node: null});
  }

  /* A node of a part: [part, number]. */
  function name_of(part, node) {
    const tree = built.parts[part].tree, f = tree.frame[node];
    if (node === 0) return built.two ? title_of(frames[built.of]) : "all of " + page.whose();
    if (f >= 0) return title_of(frames[f]);
    if (f === OUTSIDE)
      return built.frames_shown === "own" ? "outside your code" : "outside Python";
    return count_text(tree.more[node] || 1) + " smaller";
  }

  function frame_of(part, node) {
    if (node === 0) return built.two ? frames[built.of] : null;
    const f = built.parts[part].tree.frame[node];
    return f >= 0 ? frames[f] : null;
  }

  function is_own(part, node) {
    const frame = frame_of(part, node);
    return !!frame && role_of(frame) === 0;
  }

  function second_of(part, node) {
    const frame = frame_of(part, node);
    if (frame) return second_title_of(frame);
    return node === 0 ? value_text(built.parts[part].value[0]) : "";
  }

  function style_of(part, node) {
    const f = node === 0 && built.two ? built.of : built.parts[part].tree.frame[node];
    return f >= 0 ? styles[f] : ROLES.length * SHADES + (node === 0 || f === OUTSIDE ? 1 : 0);
  }

  function fill(g, list, style) {
    const special = style >= ROLES.length * SHADES, role = Math.floor(style / SHADES);
    g.fillStyle = special ? css(style > ROLES.length * SHADES ? "--r-all" : "--r-small")
      : css("--r" + role + "abc"[style % SHADES]);
    for (const d of list) g.fillRect(d.x, d.y, d.width > 2 ? d.width - 1 : d.width, ROW - 1);
    if (special && style === ROLES.length * SHADES)
      g.fillStyle = tile(g, "lines", css("--r-line"));
    else if (special || role === 3) return;
    else g.fillStyle = role === 2 ? tile(g, "dots", css("--box")) : css("--box");
    for (const d of list) {
      if (d.width < 4) continue;
      if (special) g.fillRect(d.x, d.y, d.width - 1, ROW - 1);
      else if (role === 0) g.fillRect(d.x + 1, d.y + 3, 2.5, ROW - 7);
      else g.fillRect(d.x, d.y + ROW - 3, d.width - 1, 2);
    }
  }

  /* The box under the cursor or the keys. */
  function lines_of(part, node) {
    const a = built.parts[part], frame = frame_of(part, node), v = a.value[node];
    const lines = [name_of(part, node)], whole = built.base.value[0];
    if (frame && (frame.file || frame.module))
      lines.push((frame.file || frame.module) + (frame.line && node ? ":" + frame.line : ""));
    lines.push(value_text(v) + ", " + share_text(v, whole) + " of " + page.whose());
    const up = a.tree.parent[node];
    if (up > 0 && !built.two) lines.push(share_text(v, a.value[up]) + " of " + name_of(part, up));
    const others = built.measures.filter((m) => m !== built.measure && a.tree[m][node] > 0);
    const titles = new Map(measure_list());
    for (const m of others)
      if (titles.has(m))
        lines.push(titles.get(m) + ": " +
          (m === "count" ? count_text : size_text)(a.tree[m][node]));
    if (a.tree.kept_count) lines.push(count_text(a.tree.kept_count[node]) + " blocks kept");
    if (frame) lines.push(ROLES[role_of(frame)][1]);
    return lines;
  }

  function enter(part, node) {
    const frame = frame_of(part, node);
    if (built.two) {
      if (node && frame) look_at(built.parts[part].tree.frame[node]);
    } else zoom(node === zoomed() ? built.parts[0].tree.parent[node] : node);
  }

  /* True: the key was taken. */
  function key(pressed, cursor) {
    if (pressed !== "s" || !cursor || !frame_of(cursor.part, cursor.node)) return false;
    look_at(cursor.node ? built.parts[cursor.part].tree.frame[cursor.node] : built.of);
    return true;
  }

  function draw_crumbs_of() {
    if (built.two) {
      const f = frames[built.of];
      draw_crumbs(crumbs, [["Callers above and callees below " + title_of(f), null]]);
      return;
    }
    const steps = [], a = built.parts[0];
    for (let node = zoomed(); node >= 0; node = a.tree.parent[node]) {
      const to = node;
      steps.unshift([name_of(0, node), () => zoom(to)]);
    }
    draw_crumbs(crumbs, steps);
    crumbs.hidden = steps.length < 2;
  }

  function draw_table() {
    const arranged = built.base;
    const node = built.kind === "down" ? zoomed() : 0, whole = arranged.value[node];
    if (!arranged.sums || arranged.sums.node !== node)
      arranged.sums = {node, list: function_sums(arranged, node, functions)};
    const list = arranged.sums.list
      .filter(([f]) => !search.text() || search.of_frame(f))
      .sort((x, y) => y[sorted] - x[sorted] || y[3 - sorted] - x[3 - sorted] || x[0] - y[0]);
    const shown = all ? list.slice(0, 500) : list.slice(0, TABLE_FIRST);
    const head = make("tr", {}, make("th", {scope: "col"}, "Function" +
      (node ? " in " + name_of(0, node) : "")),
    make("th", {scope: "col"}, "Role"), heading("Itself", 2), heading("With all it calls", 1));
    const body = make("tbody", {});
    for (const [f, sum, own] of shown) {
      const button = make("button", {class: "open plain", title: "Its callers and callees"},
        make("span", {class: "name"}, title_of({...frames[f], line: 0})));
      button.onclick = () => look_at(f);
      const place = second_title_of({...frames[f], line: 0});
      body.append(make("tr", {}, make("th", {scope: "row"}, button,
        make("span", {class: "where", title: frames[f].file}, place)),
      make("td", {class: "role"}, make("i", {class: "dot role " + ROLES[role_of(frames[f])][0]}),
        ROLES[role_of(frames[f])][0]),
      amount(own, whole, sorted === 2), amount(sum, whole, sorted === 1)));
    }
    table.textContent = "";
    table.append(make("thead", {}, head), body);
    more.hidden = shown.length >= Math.min(500, list.length);
    more.textContent = "Show more of " + list.length + " functions";
  }

  function heading(title, column) {
    const button = make("button", {}, title);
    button.onclick = () => {
      sorted = column;
      draw_table();
    };
    return make("th", {scope: "col", "aria-sort": sorted === column ? "descending" : null}, button);
  }

  function amount(v, whole, bar) {
    const cell = make("td", {class: "n", title: count_text(v)});
    if (v) cell.append(value_text(v), " ", make("small", {}, share_text(v, whole)));
    else cell.append("–");
    if (bar) cell.style.setProperty("--share", (whole ? (100 * v) / whole : 0) + "%");
    return cell;
  }

  function describe() {
    const base = built.base, title = new Map(measure_list());
    if (base.most === undefined)
      base.most = function_sums(base, 0, functions).reduce((best, f) =>
        (!best || f[2] > best[2] ? f : best), null);
    const top = base.most;
    pane.canvas.setAttribute("aria-label", "Flame graph of " + built.space.name +
      (page.filter() ? ", " + lane_title(page.lane()) + " alone, " : ", ") +
      title.get(built.measure).toLowerCase() + ": " + value_text(base.value[0]) +
      (top ? ", most of it by " + title_of(frames[top[0]]) + " " + second_title_of(frames[top[0]]) + ": " +
        value_text(top[2]) : "") +
      ". Arrow keys move, Enter zooms, Escape zooms out; the table below has the same.");
    whose.draw();
    note.textContent = whose.says() || (page.applied_range()
      ? "Of the selected range, by call site: each is drawn with one of its stacks."
      : built.base.value[0] ? "" : "Nothing to draw: " + value_text(0) + ".");
  }

  function draw() {
    build();
    layouts.draw();
    measures.draw(measure_list(), built.measure);
    which.draw(frame_list(built.python), built.frames_shown);
    search.draw();
    draw_crumbs_of();
    const a = built.parts[0], of = zoomed();
    const rows = boxes.rows_of(0, of) + (built.two ? boxes.rows_of(1, of) - 1 : 0);
    pane.size(rows * ROW, Math.max(240, Math.min(640, Math.round(innerHeight * 0.62))));
    pane.select(boxes.rect_of_cursor());
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
  keys.push(["/", "search", () => search.focus(), root]);
  keys.push(["n N", "in the flame graph and the map: next and last match", null]);
  keys.push(["n", "", () => search.step(1), root]);
  keys.push(["N", "", () => search.step(-1), root]);
  keys.push(["↑ ↓ ← →", "in the flame graph: parent, child, siblings; Enter zooms, Esc zooms out, " +
    "s shows callers and callees", null]);
  return draw;
}

views.push({id: "flame", title: "Flame graph", shows: (space) => !!space.tree, make: Flame,
  own: ["flame", "measure", "frames", "function", "node", "find"]});
