/* state.js - what the reader has chosen: all of it in the URL's fragment, so that a link shows the
 * same and the back button goes back. Keys: view, space, from and to (slices), sort, find, open,
 * theme, process, and what a view adds for itself. */
const state = (function () {
  const listeners = [];
  let values = parse();

  function parse() {
    const out = {};
    for (const [key, value] of new URLSearchParams(location.hash.slice(1))) out[key] = value;
    return out;
  }

  function text() {
    return "#" + new URLSearchParams(Object.entries(values)).toString();
  }

  function tell(changed) {
    for (const listener of listeners) listener(changed);
  }

  window.addEventListener("popstate", () => {
    const before = values;
    values = parse();
    const changed = new Set();
    for (const key of new Set([...Object.keys(before), ...Object.keys(values)]))
      if (before[key] !== values[key]) changed.add(key);
    if (changed.size) tell(changed);
  });

  return {
    keys: () => Object.keys(values),
    get: (key, otherwise) => (key in values ? values[key] : otherwise),
    number(key, otherwise) {
      const n = Number(values[key]);
      return key in values && Number.isFinite(n) ? n : otherwise;
    },
    /* Change some; null removes. With `quietly` the back button does not stop here. */
    set(change, quietly) {
      const changed = new Set();
      for (const key in change) {
        const value = change[key] === null ? undefined : String(change[key]);
        if (values[key] === value) continue;
        changed.add(key);
        if (value === undefined) delete values[key];
        else values[key] = value;
      }
      if (!changed.size) return;
      history[quietly ? "replaceState" : "pushState"](null, "", text());
      tell(changed);
    },
    listen: (listener) => listeners.push(listener),
  };
})();
