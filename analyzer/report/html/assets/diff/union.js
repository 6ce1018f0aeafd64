/* union.js - the stacks of both sides in one flame graph. A box is as wide as its stacks are on the
 * side where each is larger, so what is gone is seen, too. More is orange, less is blue, with an
 * arrow and a number; grey is what no changed line is below. */

/* Styles of boxes: none changed, three degrees of more and of less, new, gone, small, all. */
const STYLE = {SAME: 0, UP: 1, DOWN: 4, NEW: 7, GONE: 8, SMALL: 9, ALL: 10, COUNT: 11};
const STYLE_COLOURS = ["--same", "--up1", "--up2", "--up3", "--down1", "--down2", "--down3",
  "--up2", "--down2", "--r-small", "--r-all"];
/* Shares of the larger side: below the first a change is slight, from the second on it is large. */
const DEGREES = [0.1, 0.5];

function Union(root, page) {
  const frames = page.data.frames;
  const which = Choice("Frames", "frames", {node: null});
  const widths = Choice("Width", "width", {node: null});
  const search = Search(frames);
  const crumbs = make("nav", {class: "crumbs", "aria-label": "Zoomed to"});
  const note = make("p", {class: "hint"});
  const boxes = Boxes("flame", search, {
    built: () => built, zoomed, zoom, enter, styles: STYLE.COUNT, style_of, fill, name_of, frame_of,
    second_of, is_own, lines_of, resized: () => draw(),
  });
  const pane = boxes.pane, legend = make("ul", {class: "legend roles"});
  let built = null;

  root.append(make("div", {class: "row"}, widths.select, which.select, ...search.parts), crumbs,
    pane.box, legend, note);
  for (const [id, title] of [["up", "▲ more in B"], ["new", "▲ new in B"],
    ["down", "▼ less in B"], ["gone", "▼ gone from B"], ["same", "no change seen below"]])
    legend.append(make("li", {}, make("i", {class: "dot union " + id}), title));

  const WIDTHS = [["most", "Width: the larger side"], ["b", "Width: B"], ["a", "Width: A"],
    ["change", "Width: only the difference"]];

  function width_chosen() {
    const wanted = state.get("width");
    return WIDTHS.some((w) => w[0] === wanted) ? wanted : "most";
  }

  /* Each side's bytes of each node, and the node's width: all are sums of what its stacks have. */
  function sides_of(tree, m, width) {
    const own = own_columns(tree, ["a_" + m, "b_" + m]), n = tree.nodes, out = {...tree};
    const [a, b] = [page.scaled("a"), page.scaled("b")];
    out.a = tree["a_" + m].map(a);
    out.b = tree["b_" + m].map(b);
    out.wide = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      const x = a(own[0][i]), y = b(own[1][i]);
      out.wide[i] = width === "a" ? x : width === "b" ? y : width === "change" ? Math.abs(y - x)
        : Math.max(x, y);
    }
    for (let i = n - 1; i > 0; i--) out.wide[tree.parent[i]] += out.wide[i];
    return out;
  }

  const trees = new Map();
  function build() {
    const space = page.space(), python = has_python(space.tree, frames);
    const known = frame_list(python).map((f) => f[0]), wanted = state.get("frames");
    const frames_shown = known.includes(wanted) ? wanted : python ? "python" : "all";
    const key = [space.name, frames_shown].join(" "), width = width_chosen();
    const all = [key, page.measure(), page.each(), width].join(" ");
    if (built && built.key === all) return search.of(built);
    if (!trees.has(key))
      trees.set(key, tree_down(space.tree, UNION, shown_frames(frames, frames_shown)));
    const a = arrange(sides_of(trees.get(key), page.measure(), width), "wide");
    built = {key: all, space, python, frames_shown, width, mark: hash_of(key).toString(36),
      parts: [a], base: a, rows: [0, 0], two: null, measure: page.measure(),
      says: (sum) => both_text(sum(a.tree.a), sum(a.tree.b))};
    boxes.forget();
    search.of(built);
  }

  function both_text(a, b) {
    return size_text(a) + " → " + size_text(b) + " (" + change_text(b - a) + ")";
  }

  function zoomed() {
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

  function enter(part, node) {
    zoom(node === zoomed() ? built.parts[0].tree.parent[node] : node);
  }

  /* More 1, less -1, or 0: no line below it changed. */
  function sign_of(node) {
    const {a, b, changed} = built.parts[0].tree;
    return changed[node] && a[node] !== b[node] ? (b[node] > a[node] ? 1 : -1) : 0;
  }

  function frame_of(part, node) {
    const f = node ? built.parts[0].tree.frame[node] : MORE;
    return f >= 0 ? frames[f] : null;
  }

  function is_own(part, node) {
    const frame = frame_of(part, node);
    return !!frame && role_of(frame) === 0;
  }

  function plain_name(node) {
    const tree = built.parts[0].tree, frame = frame_of(0, node);
    if (node === 0) return "all of " + built.space.name;
    if (frame) return title_of(frame);
    if (tree.frame[node] === OUTSIDE)
      return built.frames_shown === "own" ? "outside your code" : "outside Python";
    return count_text(tree.more[node] || 1) + " smaller";
  }

  function name_of(part, node) {
    return ["▼ ", "", "▲ "][sign_of(node) + 1] + plain_name(node);
  }

  function second_of(part, node) {
    const {a, b} = built.parts[0].tree;
    if (node === 0) return both_text(a[0], b[0]);
    return sign_of(node) ? change_text(b[node] - a[node]) : size_text(b[node]);
  }

  function style_of(part, node) {
    const {a, b, frame} = built.parts[0].tree, sign = sign_of(node);
    if (node === 0) return STYLE.ALL;
    if (!sign) return frame[node] === MORE ? STYLE.SMALL : STYLE.SAME;
    if (!a[node]) return STYLE.NEW;
    if (!b[node]) return STYLE.GONE;
    const share = Math.abs(b[node] - a[node]) / Math.max(a[node], b[node]);
    return (sign > 0 ? STYLE.UP : STYLE.DOWN) + DEGREES.filter((d) => share >= d).length;
  }

  function fill(g, list, style) {
    g.fillStyle = css(STYLE_COLOURS[style]);
    for (const d of list) g.fillRect(d.x, d.y, d.width > 2 ? d.width - 1 : d.width, ROW - 1);
    const wide = list.filter((d) => d.width >= 4);
    if (style === STYLE.NEW || style === STYLE.SMALL) {
      g.fillStyle = tile(g, "lines", css("--r-line"));
      for (const d of wide) g.fillRect(d.x, d.y, d.width - 1, ROW - 1);
    } else if (style === STYLE.GONE) {
      g.strokeStyle = css("--box");
      g.lineWidth = 1;
      g.setLineDash([3, 2]);
      for (const d of wide) g.strokeRect(d.x + 1, d.y + 0.5, d.width - 3, ROW - 2);
      g.setLineDash([]);
    }
    g.fillStyle = css("--box");
    for (const d of wide)
      if (d.width >= 10 && is_own(d.part, d.node)) g.fillRect(d.x + 1, d.y + 3, 2.5, ROW - 7);
  }

  function lines_of(part, node) {
    const tree = built.parts[0].tree, frame = frame_of(part, node), {a, b} = tree;
    const lines = [plain_name(node)];
    if (frame && (frame.file || frame.module))
      lines.push((frame.file || frame.module) + (frame.line ? ":" + frame.line : ""));
    lines.push([css("--line-a"), "A", size_text(a[node])], [css("--line-b"), "B",
      size_text(b[node])]);
    const share = a[node] && b[node] ? percent_text(a[node], b[node]) : a[node] ? "gone" : "new";
    lines.push(a[node] === b[node] ? "the same on both sides"
      : ["▼ ", "", "▲ "][sign_of(node) + 1] + change_text(b[node] - a[node]) + ", " + share);
    if (!tree.changed[node]) lines.push("no line below it is called changed");
    for (const [m, title] of page.measure_list())
      if (m !== page.measure())
        lines.push(title + ": " + both_text(page.scaled("a")(tree["a_" + m][node]),
          page.scaled("b")(tree["b_" + m][node])));
    if (frame) lines.push(ROLES[role_of(frame)][1]);
    return lines;
  }

  function draw_crumbs_of() {
    const steps = [], a = built.parts[0];
    for (let node = zoomed(); node >= 0; node = a.tree.parent[node]) {
      const to = node;
      steps.unshift([name_of(0, node), () => zoom(to)]);
    }
    draw_crumbs(crumbs, steps);
    crumbs.hidden = steps.length < 2;
  }

  function describe() {
    const {a, b} = built.parts[0].tree;
    pane.canvas.setAttribute("aria-label", "Flame graph of both sides, " + built.space.name + ": " +
      both_text(a[0], b[0]) + ". Arrow keys move, Enter zooms, Escape zooms out; the table of " +
      "lines has the same.");
    note.textContent = built.base.value[0]
      ? {most: "Each stack is as wide as on the side where it is larger.",
        a: "Widths are A's: what is new has none.", b: "Widths are B's: what is gone has none.",
        change: "Widths are differences, more and less added up."}[built.width]
      : "Nothing to draw: " + size_text(0) + ".";
  }

  function draw() {
    build();
    widths.draw(WIDTHS, built.width);
    which.draw(frame_list(built.python), built.frames_shown);
    search.draw();
    draw_crumbs_of();
    pane.size(boxes.rows_of(0, zoomed()) * ROW,
      Math.max(240, Math.min(640, Math.round(innerHeight * 0.62))));
    pane.select(boxes.rect_of_cursor());
    pane.point(null);
    describe();
    pane.redraw();
  }

  window.addEventListener("beforeprint", pane.draw);
  keys.push(["/", "search", () => search.focus(), root]);
  keys.push(["n N", "in the flame graph: next and last match", null]);
  keys.push(["n", "", () => search.step(1), root]);
  keys.push(["N", "", () => search.step(-1), root]);
  keys.push(["↑ ↓ ← →", "in the flame graph: parent, child, siblings; Enter zooms, Esc zooms " +
    "out", null]);
  return draw;
}

views.push({id: "flame", title: "Flame graph of both", shows: (space) => !!space.tree, make: Union,
  own: ["width", "frames", "node", "find", "measure", "each"]});
