/* stacks.js - trees of stacks: the one of the data looked at top down, bottom up, or from one
 * function, with all of its frames or some. Nothing here touches the page. */

const MORE = -1; /* frames that are too small, as one */
const OUTSIDE = -2; /* stacks without a frame that is shown */
const SPARE = 3; /* numbers below 0 that stand for no frame, and one */
/* A node of the bottom-up tree is followed no further below this share, as flame.c cuts the other
 * tree; what it leads to is one node. */
const UP_SHARE = 0.0005;
/* Steps from a frame to its caller, of all stacks together: some 0.3 s. A recursion of thousands of
 * calls would take as many for each of them. */
const STEPS_MOST = 4e6;
const IN_RANGE = ["kept", "live", "born", "died", "kept_count"];

/* Trees to look at have: nodes, parent, frame (or one of the numbers above), more, depth, and sums
 * by measure, each with all below. A parent comes before its children; node 0 is all. */
function TreeBuilder(measures) {
  const parent = [-1], frame = [MORE], more = [0], depth = [0], known = new Map();
  const sums = measures.map(() => [0]);
  return {
    child(of, f) {
      const key = (f + SPARE) * 16777216 + of;
      let node = known.get(key);
      if (node === undefined) {
        node = parent.push(of) - 1;
        known.set(key, node);
        frame.push(f);
        more.push(0);
        depth.push(depth[of] + 1);
        for (const column of sums) column.push(0);
      }
      return node;
    },
    add(node, columns, i) {
      for (let k = 0; k < sums.length; k++) sums[k][node] += columns[k][i];
    },
    add_more: (node, n) => (more[node] += n),
    done() {
      const tree = {nodes: parent.length, measures, parent: Int32Array.from(parent),
        frame: Int32Array.from(frame), more: Uint32Array.from(more),
        depth: Uint16Array.from(depth)};
      measures.forEach((m, k) => (tree[m] = Float64Array.from(sums[k])));
      for (let i = tree.nodes - 1; i > 0; i--)
        for (const m of measures) tree[m][tree.parent[i]] += tree[m][i];
      return tree;
    },
  };
}

/* What each node has itself, by measure. */
function own_columns(tree, measures) {
  return measures.map((m) => {
    const own = Float64Array.from(tree[m]);
    for (let i = 1; i < tree.nodes; i++) own[tree.parent[i]] -= tree[m][i];
    return own;
  });
}

/* Python's own steps from an import to the module: five or so for each. */
function of_import(frame) {
  return !!frame.file && frame.file.startsWith("<frozen importlib");
}

/* Which frames are shown: "own" the user's, "python" those and Python's but for the machinery of
 * imports, "all". By frame. */
function shown_frames(frames, which) {
  const bits = which === "own" ? FLAG.USER : FLAG.USER | FLAG.PYTHON | FLAG.CUT;
  return Uint8Array.from(frames, (f) =>
    (which === "all" || (f.flags & bits && !of_import(f)) ? 1 : 0));
}

function has_python(tree, frames) {
  return tree.frame.some((f, i) => i > 0 && f >= 0 && frames[f].flags & FLAG.PYTHON);
}

/* By frame: the first frame of the same function. */
function functions_of(frames) {
  const first = new Map();
  return Int32Array.from(frames, (f, i) => {
    const key = f.name + "\n" + (f.file || f.module || "");
    if (!first.has(key)) first.set(key, i);
    return first.get(key);
  });
}

/* The tree of a range of slices: each call site with one of its stacks. */
function range_tree(space, range) {
  const b = TreeBuilder(IN_RANGE);
  for (const place of space.places.list.concat(space.places.rest)) {
    const one = range_of_place(space, place.rest ? SLICE_SITES : place.index, range);
    let node = 0;
    for (let i = place.stack.length; i-- > 0;) node = b.child(node, place.stack[i]);
    if (place.rest) b.add_more(node = b.child(0, MORE), space.places.more || 1);
    b.add(node, IN_RANGE.map((m) => [one[m]]), 0);
  }
  return b.done();
}

/* The tree from its root, without the frames that are not shown: what they have goes to the frame
 * around them. */
function tree_down(tree, measures, shown) {
  const b = TreeBuilder(measures), own = own_columns(tree, measures);
  const to = new Int32Array(tree.nodes);
  for (let i = 1; i < tree.nodes; i++) {
    const parent = tree.parent[i], f = tree.frame[i];
    let node = to[parent];
    if (f >= 0 && shown[f]) node = b.child(node, f);
    else if (f < 0 && (parent === 0 || shown[tree.frame[parent]]))
      b.add_more(node = b.child(node, MORE), tree.more[i]);
    to[i] = node;
    b.add(node || b.child(0, OUTSIDE), own, i);
  }
  b.add(0, own, 0);
  return b.done();
}

/* By node: the next node up that is shown; 0: none. */
function shown_parents(tree, shown) {
  const up = new Int32Array(tree.nodes);
  for (let i = 1; i < tree.nodes; i++) {
    const p = tree.parent[i];
    up[i] = p === 0 || (tree.frame[p] >= 0 && shown[tree.frame[p]]) ? p : up[p];
  }
  return up;
}

/* The tree from the innermost frames up to their callers. Level by level, so that what is too small
 * is left before its callers are asked for. */
function tree_up(tree, measures, shown, measure) {
  const b = TreeBuilder(measures), own = own_columns(tree, measures);
  const up = shown_parents(tree, shown), value = own[measures.indexOf(measure)];
  const least = tree[measure][0] * UP_SHARE;
  let level = [{node: 0, stacks: []}];
  /* A stack: where it begins, and how far up it is. */
  for (let i = 1; i < tree.nodes; i++) {
    if (!own.some((column) => column[i])) continue;
    const f = tree.frame[i];
    level[0].stacks.push([i, f >= 0 && shown[f] ? i : up[i]]);
  }
  let steps = 0;
  b.add(0, own, 0);
  while (level.length) {
    const next = [];
    for (const {node, stacks} of level) {
      const groups = new Map();
      for (const one of stacks) {
        const f = one[1] ? tree.frame[one[1]] : OUTSIDE;
        if (!groups.has(f)) groups.set(f, []);
        groups.get(f).push(one);
      }
      for (const [f, group] of groups) {
        let sum = 0;
        for (const [from] of group) sum += value[from];
        if (f === OUTSIDE) {
          const at = node || b.child(0, OUTSIDE);
          for (const [from] of group) b.add(at, own, from);
          continue;
        }
        steps += group.length;
        if (sum < least || steps > STEPS_MOST) {
          const at = b.child(node, MORE);
          b.add_more(at, 1);
          for (const [from] of group) b.add(at, own, from);
          continue;
        }
        for (const one of group) one[1] = up[one[1]];
        next.push({node: b.child(node, f), stacks: group});
      }
    }
    level = next;
  }
  return b.done();
}

/* From one function: `down` to what it calls, `up` to its callers. Of a recursion only the
 * outermost call counts. Both have the function's sums at node 0. */
function trees_of(tree, measures, shown, functions, wanted) {
  const down = TreeBuilder(measures), above = TreeBuilder(measures);
  const own = own_columns(tree, measures), up = shown_parents(tree, shown);
  const columns = measures.map((m) => tree[m]), to = new Int32Array(tree.nodes).fill(-1);
  let steps = 0;
  for (let i = 1; i < tree.nodes; i++) {
    const parent = to[tree.parent[i]], f = tree.frame[i];
    if (parent < 0 && (f < 0 || functions[f] !== wanted)) continue;
    if (parent < 0) {
      let node = 0;
      for (let at = up[i]; at && steps++ < STEPS_MOST; at = up[at])
        node = above.child(node, tree.frame[at]);
      above.add(node, columns, i);
      to[i] = 0;
    } else if (f >= 0 && shown[f]) to[i] = down.child(parent, f);
    else to[i] = parent;
    down.add(to[i], own, i);
  }
  return {down: down.done(), up: above.done()};
}

/* Where each node lies, by one measure and in its units: the largest child first, what stands for
 * several last. `order` is preorder, without what has nothing; `behind[p]` is the position in it
 * behind the last descendant. */
function arrange(tree, measure) {
  const n = tree.nodes, value = tree[measure], first = new Int32Array(n + 1);
  for (let i = 1; i < n; i++) first[tree.parent[i] + 1]++;
  for (let i = 0; i < n; i++) first[i + 1] += first[i];
  const fill = first.slice(0, n), children = new Int32Array(Math.max(0, n - 1));
  for (let i = 1; i < n; i++) children[fill[tree.parent[i]]++] = i;
  const x = new Float64Array(n), order = new Int32Array(n), behind = new Int32Array(n);
  const place = new Int32Array(n).fill(-1), open = [], todo = [0];
  let count = 0;
  while (todo.length) {
    const node = todo.pop();
    if (node < 0) {
      behind[open.pop()] = count;
      continue;
    }
    place[node] = count;
    order[count] = node;
    open.push(count++);
    todo.push(-1);
    const list = children.subarray(first[node], first[node + 1]);
    list.sort((a, b) => (tree.frame[a] < 0) - (tree.frame[b] < 0) || value[b] - value[a] || a - b);
    let at = x[node];
    for (const child of list) {
      x[child] = at;
      at += value[child];
    }
    for (let i = list.length; i-- > 0;) if (value[list[i]] > 0) todo.push(list[i]);
  }
  return {tree, value, x, order, behind, place, count,
    children: (node) => Array.from(children.subarray(first[node], first[node + 1]))
      .filter((c) => value[c] > 0)};
}

/* The functions below a node: [first frame, sum, what they have themselves]. */
function function_sums(a, node, functions) {
  const n = functions.length, sum = new Float64Array(n), own = new Float64Array(n);
  const open = new Int32Array(n), seen = [], way = [], ends = [];
  const {frame, parent} = a.tree;
  for (let p = a.place[node]; p >= 0 && p < a.behind[a.place[node]]; p++) {
    const at = a.order[p], value = a.value[at];
    while (ends.length && ends[ends.length - 1] <= p) {
      ends.pop();
      open[way.pop()]--;
    }
    if (at !== node && parent[at] > 0 && frame[parent[at]] >= 0)
      own[functions[frame[parent[at]]]] -= value;
    if (at === 0 || frame[at] < 0) continue;
    const of = functions[frame[at]];
    if (!sum[of]) seen.push(of);
    if (!open[of]++) sum[of] += value;
    own[of] += value;
    way.push(of);
    ends.push(a.behind[p]);
  }
  return seen.map((of) => [of, sum[of], own[of]]);
}
