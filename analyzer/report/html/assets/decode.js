/* decode.js - reads the sections of a report's block, as docs/page-data.md describes them. */

const GROUPS = 13; /* call sites in a curve, the rest is the last */
const CLASSES = 8; /* classes of the ledger in a curve, the rest is the last */
const MEASURES = ["moment", "peak", "total", "count", "temporary"];
const MARK = ["failure", "recovered", "phase", "request", "checkpoint"];

function read_curve(r) {
  const c = {from: r.number(), until: r.number(), count: r.number(), groups: []};
  c.last = r.differences(c.count);
  c.most = r.differences(c.count);
  c.least = r.differences(c.count);
  for (let i = 0; i < c.count; i++) c.most[i] += c.least[i];
  for (let g = 0; g < GROUPS; g++) c.groups.push(r.differences(c.count));
  c.classes = [];
  for (let k = 0; k < CLASSES; k++) c.classes.push(r.differences(c.count));
  return c;
}

function read_marks(r, texts) {
  const list = [];
  for (let n = r.number(); n > 0; n--) {
    const m = {kind: MARK[r.number()], from: r.number()};
    m.until = m.from + r.number();
    m.bytes = r.number();
    m.name = texts[r.number()];
    m.space = texts[r.number()];
    list.push(m);
  }
  return list;
}

const GROUP = ["thread", "stage", "request"];

/* Who worked: groups of blocks by thread, stage and request. */
function read_lanes(r, texts) {
  const lanes = {begun: r.number(), at_once: r.number(), more: r.number(), list: []};
  const thread = () => {
    const name = texts[r.number()], tid = r.number();
    return (name || "thread") + " " + tid;
  };
  for (let n = r.number(); n > 0; n--) {
    const lane = {index: lanes.list.length, kind: GROUP[r.number()], from: r.number()};
    lane.until = lane.from + r.number();
    if (lane.kind === "thread") lane.name = thread();
    else lane.name = texts[r.number()];
    if (lane.kind === "request") {
      lane.name = (lane.name || "request") + " " + r.number();
      const flags = r.number();
      lane.refused = !!(flags & 1);
      lane.unfinished = !!(flags & 2);
      lane.thread = thread();
    }
    lanes.list.push(lane);
  }
  return lanes;
}

/* Numbers and measures of some nodes or places. */
function read_sums(r) {
  const n = r.number(), sums = {at: r.column(n)};
  for (let i = 1; i < n; i++) sums.at[i] += sums.at[i - 1];
  for (const m of MEASURES) sums[m] = r.column(n);
  return sums;
}

/* What each of them held in a space, by index. */
function read_groups(r) {
  const g = {more: {moment: r.number(), total: r.number()}, by_lane: new Map()};
  for (let n = r.number(); n > 0; n--) {
    const index = r.number(), one = {index, peak: r.number(), peak_ns: r.number(),
      moment: r.number(), total: r.number(), count: r.number(), nodes: null, places: null};
    if (r.number()) {
      one.nodes = read_sums(r);
      one.places = read_sums(r);
    }
    g.by_lane.set(index, one);
  }
  return g;
}

function read_places(r, texts) {
  const p = {list: [], more: 0}, n = r.number();
  p.more = r.number();
  for (let i = 0; i < n; i++) {
    const c = {index: i, name: texts[r.number()] || "?", file: texts[r.number()],
      line: r.number(), part: texts[r.number()]};
    const bits = r.number();
    c.python = bits % 2 === 1;
    c.owner = bits >> 1;
    c.class_number = r.number() - 1; /* -1: none */
    c.largest = r.number();
    for (const m of MEASURES) c[m] = r.number();
    const shown = r.number();
    c.cut = r.number();
    c.stack = r.column(shown); /* frames, the innermost first */
    p.list.push(c);
  }
  p.rest = {index: -1, name: "all other call sites", rest: true, stack: []};
  for (const m of MEASURES) p.rest[m] = r.number();
  return p;
}

/* By place: [born, died, bytes, count]...; died is `count` for what was still alive. */
function read_slices(r) {
  const s = {end: r.number(), count: r.number(), sites: new Map()};
  for (let n = r.number(); n > 0; n--) {
    const place = r.number(), cells = [];
    let at = 0;
    for (let k = r.number(); k > 0; k--) {
      at += r.number();
      const born = Math.floor(at / (s.count + 1)), further = at % (s.count + 1);
      cells.push([born, further === s.count ? s.count : born + further, r.number(), r.number()]);
    }
    s.sites.set(place, cells);
  }
  return s;
}

function read_map(r, texts) {
  const m = {bytes: r.number(), live: r.number(), blocks: r.number(), holes: r.number(),
    hole_bytes: r.number(), largest_hole: r.number(), hidden: r.number(), request: r.number()};
  m.room = r.number() ? {start: r.number(), size: r.number(), bytes: r.number(),
    blocks: r.number()} : null;
  m.sites = [];
  for (let n = r.number(); n > 0; n--)
    m.sites.push({name: texts[r.number()] || "?", file: texts[r.number()], line: r.number(),
      bytes: r.number(), blocks: r.number()});
  const n = r.number();
  m.more_segments = r.number();
  m.more_bytes = r.number();
  m.segments = [];
  for (let i = 0, start = 0, size = 0, first = 0; i < n; i++) {
    start += r.signed();
    size += r.signed();
    const born = r.number(), bits = r.number(), count = r.number();
    m.segments.push({start, size, born, acquired: !!(bits & 1), captured: !!(bits & 2),
      mapped: !!(bits & 4), first, count});
    first += count;
  }
  const p = m.pieces = {count: r.number()};
  p.kind = r.column(p.count); /* 0 hole, 1 mixed, 2 another site, 3 + number of the site */
  p.size = r.column(p.count);
  p.free = r.column(p.count);
  p.blocks = r.column(p.count);
  p.holes = r.column(p.count);
  p.born = new Float64Array(p.count);
  for (let i = 0, v = 0; i < p.count; i++) if (p.blocks[i]) p.born[i] = v += r.signed();
  return m;
}

function read_space(r, texts) {
  return {name: texts[r.number()], kind: r.number(), limit: r.number(),
    limit_kind: texts[r.number()], peak: r.number(), peak_ns: r.number(), moment: r.number(),
    request: r.number(), level: null, map: null, moments: [], groups: null};
}

function read_section(data, id, r, texts) {
  const space = data.spaces[data.spaces.length - 1];
  if (id === SECTION.RUN) {
    data.run = {end: r.number(), moment: r.number(), at: texts[r.number()], primary: r.number(),
      spaces: r.number(), error: r.number(), classes: []};
    for (let n = r.number(); n > 0; n--) data.run.classes.push(texts[r.number()]);
  }
  else if (id === SECTION.MARKS) data.marks = read_marks(r, texts);
  else if (id === SECTION.FRAMES) data.frames = read_frames(r, texts);
  else if (id === SECTION.SPACE) data.spaces.push(read_space(r, texts));
  else if (id === SECTION.CURVE) space.curve = read_curve(r);
  else if (id === SECTION.LATE) space.late = read_curve(r);
  else if (id === SECTION.PLACES) space.places = read_places(r, texts);
  else if (id === SECTION.SLICES) space.slices = read_slices(r);
  else if (id === SECTION.TREE) space.tree = read_tree(r, MEASURES);
  else if (id === SECTION.MAP) space.map = read_map(r, texts);
  else if (id === SECTION.LANES) data.lanes = read_lanes(r, texts);
  else if (id === SECTION.GROUPS) space.groups = read_groups(r);
  else if (id === SECTION.MOMENT)
    space.moments.push({kind: MOMENT[r.number()], ns: r.number(), map: read_map(r, texts)});
  else if (id === SECTION.LEVELS) {
    space.level = {name: texts[r.number()]};
    space.level.at = r.differences(r.number());
  }
}

function decode(bytes) {
  const data = read_sections(bytes, read_section);
  /* First, so that the others are drawn over them. */
  data.marks.unshift(...data.lanes.list.filter((l) => l.kind === "request")
    .map((lane) => ({...lane, bytes: 0})));
  for (const space of data.spaces)
    for (const p of space.places.list) p.class = data.run.classes[p.class_number] || null;
  return data;
}
