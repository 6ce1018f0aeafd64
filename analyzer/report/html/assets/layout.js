/* layout.js - a map as data: where each piece lies, what a segment has, and who pins the
 * largest hole. Nothing here touches the page. */

const KIND = {HOLE: 0, MIXED: 1, OTHER: 2, SITE: 3};

function address_text(n) {
  return "0x" + n.toString(16);
}

/* A, B, ... Z, AA, AB, ... as the text map has them. */
function letter_of(site) {
  const last = String.fromCharCode(65 + (site % 26));
  return site < 26 ? last : letter_of(Math.floor(site / 26) - 1) + last;
}

function Layout(map) {
  const pieces = map.pieces, n = pieces.count;
  const offset = new Float64Array(n), segment = new Int32Array(n);
  let hole = -1;
  map.segments.forEach((s, number) => {
    let at = 0;
    Object.assign(s, {number, free: 0, blocks: 0, holes: 0, largest: 0});
    for (let i = s.first; i < s.first + s.count; i++) {
      offset[i] = at;
      segment[i] = number;
      at += pieces.size[i];
      s.free += pieces.free[i];
      s.blocks += pieces.blocks[i];
      s.holes += pieces.holes[i];
      if (pieces.kind[i] !== KIND.HOLE) continue;
      s.largest = Math.max(s.largest, pieces.size[i]);
      if (hole < 0 || pieces.size[i] > pieces.size[hole]) hole = i;
    }
  });

  function site_of(i) {
    return pieces.kind[i] >= KIND.SITE ? pieces.kind[i] - KIND.SITE : -1;
  }

  function name_of(i) {
    const site = site_of(i);
    if (site >= 0) return map.sites[site].name;
    return ["a hole", "blocks of several call sites", "a smaller call site"][pieces.kind[i]];
  }

  return {
    map, pieces, offset, segment, site_of, name_of,
    hole, /* the largest; -1: none is told apart */
    address: (i) => map.segments[segment[i]].start + offset[i],
    /* The piece of a segment at an offset. */
    piece_at(s, at) {
      let low = s.first, high = s.first + s.count - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (offset[middle] <= at) low = middle;
        else high = middle - 1;
      }
      return low;
    },
    /* The number of the piece at an address; -1: none. */
    at_address(address) {
      const s = map.segments.find((one) => address >= one.start && address < one.start + one.size);
      return s && address >= 0 ? this.piece_at(s, address - s.start) : -1;
    },
    /* The pieces beside one in its segment; -1: the segment ends there. */
    beside(i) {
      const s = map.segments[segment[i]];
      return [i > s.first ? i - 1 : -1, i < s.first + s.count - 1 ? i + 1 : -1];
    },
    /* Who has blocks between two addresses: [site, bytes, blocks], most first. */
    sites_between(from, to) {
      const out = new Map();
      for (const s of map.segments) {
        if (s.start >= to || s.start + s.size <= from) continue;
        for (let i = s.first; i < s.first + s.count; i++) {
          const start = s.start + offset[i], site = site_of(i);
          if (start >= to || start + pieces.size[i] <= from || !pieces.blocks[i]) continue;
          if (!out.has(site)) out.set(site, [site, 0, 0]);
          /* A piece of several blocks counts with the part of it that lies in the range. */
          const part = (Math.min(start + pieces.size[i], to) - Math.max(start, from)) /
            pieces.size[i];
          const whole = pieces.blocks[i] === 1 || part === 1;
          out.get(site)[1] += (pieces.size[i] - pieces.free[i]) * (whole ? 1 : part);
          out.get(site)[2] += whole ? pieces.blocks[i] : Math.ceil(pieces.blocks[i] * part);
        }
      }
      return [...out.values()].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    },
    /* The segment and the piece at an address; null: none. */
    find(address) {
      const s = map.segments.find((one) => address >= one.start && address < one.start + one.size);
      return s || null;
    },
  };
}
