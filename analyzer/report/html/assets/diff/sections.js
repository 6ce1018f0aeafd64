/* sections.js - reads the sections of a comparison's block, as docs/page-data.md describes them. */

Object.assign(SECTION, {SIDES: 32, DIFF_SPACE: 33, PHASES: 34, LINES: 35, UNION: 36});
const MEASURES = ["moment", "peak", "total"];
const UNION = [...MEASURES.map((m) => "a_" + m), ...MEASURES.map((m) => "b_" + m), "changed"];
const KINDS = ["same", "grew", "shrank", "new", "gone"];
const REASONS = ["bytes held", "bytes when it is busy", "sizes of its blocks", "bytes acquired"];

function read_sides(r, texts) {
  const bits = r.number(), s = {per_request: !!(bits & 1), one_run: !!(bits & 2)};
  s.by = texts[r.number()];
  for (const side of ["a", "b"])
    s[side] = {title: texts[r.number()], at: texts[r.number()], pid: r.number()};
  s.spaces = r.number();
  return s;
}

function read_diff_space(r, texts) {
  const s = {name: texts[r.number()]};
  for (const side of ["a", "b"])
    s[side] = {present: !!r.number(), time: r.number(), bytes: r.number(), error: r.number(),
      peak: r.number(), requests: r.number(), limit: r.number()};
  return s;
}

function read_diff_curve(r) {
  if (!r.number()) return null;
  const c = {from: r.number(), length: r.number(), last: r.number(), known: r.number()};
  c.at = r.differences(c.known);
  return c;
}

function read_phases(r, texts) {
  const out = [], n = r.number(), points = r.number();
  for (let i = 0; i < n; i++)
    out.push({name: texts[r.number()], points, a: read_diff_curve(r), b: read_diff_curve(r)});
  return out;
}

function read_lines(r, texts) {
  const out = {list: []}, n = r.number();
  out.more = r.number();
  for (let i = 0; i < n; i++) {
    const l = {index: i, name: texts[r.number()] || "?", file: texts[r.number()],
      line: r.number(), line_before: r.number(), renamed: texts[r.number()],
      kind: KINDS[r.number()], reason: REASONS[r.number()]};
    const bits = r.number();
    l.arenas = !!(bits & 1);
    l.unmatched = !!(bits & 2);
    l.change = r.signed();
    l.noise = r.number();
    for (const side of ["a", "b"]) {
      l[side] = {};
      for (const m of MEASURES) l[side][m] = r.number();
      Object.assign(l[side], {blocks: r.number(), mean: r.number(), top: r.number(),
        error: r.number()});
    }
    const shown = r.number();
    l.cut = r.number();
    l.stack = r.column(shown); /* frames, the innermost first */
    out.list.push(l);
  }
  const rest = out.rest = {index: -1, name: "all other lines", rest: true, stack: [],
    kind: "same", noise: 0, change: 0, a: {}, b: {}};
  for (const side of ["a", "b"]) for (const m of MEASURES) rest[side][m] = r.number();
  return out;
}

function read_diff(bytes) {
  return read_sections(bytes, (data, id, r, texts) => {
    const space = data.spaces[data.spaces.length - 1];
    if (id === SECTION.SIDES) data.sides = read_sides(r, texts);
    else if (id === SECTION.FRAMES) data.frames = read_frames(r, texts);
    else if (id === SECTION.DIFF_SPACE) data.spaces.push(read_diff_space(r, texts));
    else if (id === SECTION.PHASES) space.phases = read_phases(r, texts);
    else if (id === SECTION.LINES) space.lines = read_lines(r, texts);
    else if (id === SECTION.UNION) space.tree = read_tree(r, UNION);
  });
}
