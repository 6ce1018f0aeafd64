"""kustomize.py - the objects that kustomize makes of a folder, as far as the manifests here need:
resources, components, images, strategic merges with selectors, replacements. What it does not know
is an error. tests/packages compares it with the real one, so that tests can do without."""
import copy
import os
import re

import yaml

KNOWN = {"apiVersion", "kind", "resources", "components", "patches", "replacements", "images"}
LOCAL = "config.kubernetes.io/local-config"
# What names an item of a list in a strategic merge; lists of others are replaced.
MERGE_KEYS = {"containers": "name", "initContainers": "name", "volumes": "name", "env": "name",
              "volumeMounts": "mountPath", "ports": "containerPort"}


class Unknown(Exception):
    """Something that this reader has no rule for."""


def read(path):
    with open(path) as f:
        return [x for x in yaml.safe_load_all(f) if x]


def selected(objects, select):
    wanted = dict([select["annotationSelector"].split("=", 1)]
                  if "annotationSelector" in select else [])
    if set(select) - {"kind", "name", "annotationSelector"}:
        raise Unknown("selector %s" % select)
    return [x for x in objects if re.fullmatch(select.get("kind", ".*"), x["kind"])
            and re.fullmatch(select.get("name", ".*"), x["metadata"]["name"])
            and wanted.items() <= x["metadata"].get("annotations", {}).items()]


def merge(into, patch, name=""):
    """`patch` over `into`; items of lists that are new go before the others."""
    if isinstance(into, dict) and isinstance(patch, dict):
        for key, value in patch.items():
            into[key] = merge(into[key], value, key) if key in into else copy.deepcopy(value)
        return into
    key = MERGE_KEYS.get(name)
    if not (key and isinstance(into, list) and isinstance(patch, list)):
        return copy.deepcopy(patch)
    there = {item[key]: item for item in into}
    fresh = [copy.deepcopy(item) for item in patch if item[key] not in there]
    for item in patch:
        if item[key] in there:
            merge(there[item[key]], item)
    return fresh + into


def patch_all(objects, patch, folder):
    if set(patch) != {"path", "target"}:
        raise Unknown("patch %s" % patch)
    for given in read(os.path.join(folder, patch["path"])):
        for x in selected(objects, patch["target"]):
            merge(x, {k: v for k, v in given.items() if k not in ("apiVersion", "kind",
                                                                   "metadata")})


def steps_of(path):
    return re.findall(r"\[(\w+)=([^\]]*)\]|([^.\[\]]+)", path)


def put(x, path, value, options):
    """Set the value at a path such as "a.0.b.[name=c].d", which is made where it is not there."""
    if not options.get("create") or set(options) - {"create", "delimiter", "index"}:
        raise Unknown("options %s" % options)
    steps = steps_of(path)
    for number, (key, name, plain) in enumerate(steps[:-1]):
        after = steps[number + 1]
        if plain and isinstance(x, list):
            x = x[int(plain)]
        elif plain:
            x = x.setdefault(plain, [] if after[0] else {})
        else:
            found = next((item for item in x if item.get(key) == name), None)
            if found is None:
                found = {key: name}
                x.append(found)
            x = found
    last = steps[-1][2]
    if "delimiter" in options:
        if options["index"] != -1:
            raise Unknown("options %s" % options)
        value = value + options["delimiter"] + x.get(last, "")
    x[last] = value


def replace(objects, rule):
    source, = selected(objects, {k: v for k, v in rule["source"].items() if k != "fieldPath"})
    value = source
    for _, _, step in steps_of(rule["source"]["fieldPath"]):
        value = value[step]
    for target in rule["targets"]:
        for x in selected(objects, target["select"]):
            for path in target["fieldPaths"]:
                put(x, path, value, target.get("options", {}))


def rename_images(objects, images):
    def visit(x):
        if isinstance(x, list):
            for item in x:
                visit(item)
        elif isinstance(x, dict):
            name, _, tag = str(x.get("image", "")).partition(":")
            for image in images:
                if name == image["name"]:
                    tag = image.get("newTag", tag)
                    x["image"] = image.get("newName", name) + (":" + tag if tag else "")
            for value in x.values():
                visit(value)
    visit(objects)


def apply(folder, objects):
    """Add what the folder's kustomization has to the objects, or change them by it."""
    given, = read(os.path.join(folder, "kustomization.yaml"))
    if set(given) - KNOWN:
        raise Unknown("%s has %s" % (folder, ", ".join(sorted(set(given) - KNOWN))))
    for name in given.get("resources", []):
        path = os.path.join(folder, name)
        objects += read(path) if os.path.isfile(path) else apply(path, [])
    for name in given.get("components", []):
        apply(os.path.join(folder, name), objects)
    for patch in given.get("patches", []):
        patch_all(objects, patch, folder)
    for rule in given.get("replacements", []):
        replace(objects, rule)
    rename_images(objects, given.get("images", []))
    return objects


def build(folder):
    """The objects of a folder, without those that stay on the local side."""
    return [x for x in apply(str(folder), [])
            if x["metadata"].get("annotations", {}).get(LOCAL) != "true"]
