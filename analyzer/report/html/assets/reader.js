/* reader.js - reads a data block: numbers, texts, frames, and the sections that they lie in. */

/* Numbers of 7 bits a byte; columns of them. What ends too early gives 0s. */
function Reader(bytes) {
  let at = 0;
  const r = {
    done: () => at >= bytes.length,
    number() {
      let value = 0, scale = 1, b;
      do {
        b = at < bytes.length ? bytes[at++] : 0;
        value += (b & 127) * scale;
        scale *= 128;
      } while (b & 128);
      return value;
    },
    signed() {
      const v = r.number();
      return v % 2 ? -(v + 1) / 2 : v / 2;
    },
    bytes(n) {
      at += n;
      return bytes.subarray(at - n, Math.min(at, bytes.length));
    },
    column(n) {
      const out = new Float64Array(n);
      for (let i = 0; i < n; i++) out[i] = r.number();
      return out;
    },
    differences(n) {
      const out = new Float64Array(n);
      let v = 0;
      for (let i = 0; i < n; i++) out[i] = v += r.signed();
      return out;
    },
  };
  return r;
}

const SECTION = {TEXTS: 1, RUN: 2, FRAMES: 3, MARKS: 4, SPACE: 5, CURVE: 6, LATE: 7, PLACES: 8,
  SLICES: 9, TREE: 10, MAP: 11, LEVELS: 12, MOMENT: 13, LANES: 14, GROUPS: 15};
const FLAG = {PYTHON: 1, USER: 2, LIBRARY: 4, INTERPRETER: 8, CUT: 16, INLINED: 32,
  FRAMEWORK: 64};

function read_texts(r) {
  const out = [null], decoder = new TextDecoder();
  let last = new Uint8Array(0);
  for (let n = r.number(); n > 0; n--) {
    const same = r.number(), rest = r.bytes(r.number());
    const text = new Uint8Array(same + rest.length);
    text.set(last.subarray(0, same));
    text.set(rest, same);
    out.push(decoder.decode(text));
    last = text;
  }
  return out;
}

function read_frames(r, texts) {
  const n = r.number(), list = [];
  const functions = r.column(n), files = r.column(n), lines = r.column(n), flags = r.column(n);
  const modules = r.column(n);
  for (let i = 0; i < n; i++)
    list.push({name: texts[functions[i]] || "?", file: texts[files[i]], line: lines[i],
      flags: flags[i], module: texts[modules[i]]});
  return list;
}

/* In preorder: node 0 is all; `parent`, `frame` (-1: a "more" node of `more` frames that are too
 * small), `end` (behind its last descendant) and the measures, each with all below. */
function read_tree(r, measures) {
  const n = r.number(), t = {nodes: n, depth: new Uint16Array(n), parent: new Int32Array(n),
    frame: new Int32Array(n), more: new Uint32Array(n), end: new Int32Array(n)};
  const way = [];
  for (let i = 0, depth = 0; i < n; i++) {
    depth += r.signed();
    while (way.length > depth) t.end[way.pop()] = i;
    t.depth[i] = depth;
    t.parent[i] = depth ? way[depth - 1] : -1;
    way.push(i);
  }
  while (way.length) t.end[way.pop()] = n;
  for (let i = 0; i < n; i++) t.frame[i] = r.number() - 1;
  for (let i = 0; i < n; i++) if (t.frame[i] < 0) t.more[i] = r.number();
  for (const m of measures) {
    const column = t[m] = r.column(n);
    for (let i = 1; i < n; i++) column[i] = column[t.parent[i]] - column[i];
  }
  return t;
}

/* {spaces}, as read(data, id, reader, texts) filled it from each section. */
function read_sections(bytes, read) {
  const r = Reader(bytes), sections = [], data = {spaces: []};
  while (!r.done()) {
    const id = r.number();
    sections.push([id, r.bytes(r.number())]);
  }
  const texts = read_texts(Reader(sections.find((s) => s[0] === SECTION.TEXTS)[1]));
  for (const [id, body] of sections) read(data, id, Reader(body), texts);
  return data;
}

/* decode(bytes): what the page is made of. */
async function read_block(element, decode) {
  const text = atob(element.textContent.trim()), packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return decode(new Uint8Array(await new Response(plain).arrayBuffer()));
}
