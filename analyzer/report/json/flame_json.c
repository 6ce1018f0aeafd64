/* flame_json.c - the tree of a flame graph as JSON: its nodes in a flat list, since a stack may be
 * deeper than a program's reader can nest. */
#include "report/flame.h"
#include "report/format.h"
#include "report/parts.h"
#include "util/text/json.h"

/* Nodes of a smaller share are one with their siblings, as on a page. */
#define SHARE_MIN 0.0005

static void begin_node(struct json *j, uint64_t depth, uint64_t parent)
{
	json_object(j, NULL);
	json_u64(j, "depth", depth);
	json_u64_or_null(j, "parent", parent, depth > 0);
}

static void write_node(struct json *j, const struct flame_view *v, const struct frame_node *n,
    uint64_t depth, uint64_t parent)
{
	const struct flame_frame *f = n->frame ? &v->frames[n->frame - 1] : NULL;
	uint64_t itself = n->sums[0];

	for (uint32_t at = n->child; at; at = v->tree->nodes.items[at].next)
		itself -= v->tree->nodes.items[at].sums[0];
	begin_node(j, depth, parent);
	json_string(j, "function", f ? f->symbol.function ? f->symbol.function : "?" : NULL);
	json_string(j, "file", f ? f->symbol.file ? f->symbol.file : f->symbol.module : NULL);
	json_u64_or_null(j, "line", f ? f->symbol.line : 0, f && f->symbol.line);
	json_string(j, "role", f ? frame_role_name(f->role) : NULL);
	json_u64(j, "value", n->sums[0]);
	json_u64(j, "itself", itself);
	json_u64(j, "more", 0);
	json_object_end(j);
}

/* The children that are left out, as one node. Returns whether there are any. */
static bool write_more(struct json *j, const struct flame_view *v, const struct frame_node *n,
    uint64_t depth, uint64_t parent)
{
	uint64_t sums[FRAME_TREE_SUMS];
	uint32_t count = frame_tree_cut(v->tree, n, sums);

	if (!count || !sums[0])
		return false;
	begin_node(j, depth, parent);
	json_null(j, "function");
	json_null(j, "file");
	json_null(j, "line");
	json_null(j, "role");
	json_u64(j, "value", sums[0]);
	json_u64(j, "itself", 0);
	json_u64(j, "more", count);
	json_object_end(j);
	return true;
}

static void write_nodes(struct json *j, const struct flame_view *v, struct str *out)
{
	const struct frame_node *nodes = v->tree->nodes.items;
	VEC(uint64_t) above = {0}; /* by depth: the number of the node on the way to this one */
	uint64_t number = 0;
	uint32_t at = 0, depth = 0;

	do {
		const struct frame_node *n = &nodes[at];

		if (n->kept) {
			if (vec_reach(&above, depth + 1u)) {
				out->failed = true;
				break;
			}
			above.items[depth] = number;
			write_node(j, v, n, depth, depth ? above.items[depth - 1] : 0);
			number += 1u + write_more(j, v, n, depth + 1u, number);
		}
		at = frame_tree_next(v->tree, at, n->kept, &depth);
	} while (at);
	vec_free(&above);
}

void flame_json(const struct flame_view *v, const struct report_style *style, struct str *out)
{
	struct json j = {.out = out, .pretty = true};

	(void)style;
	frame_tree_keep(v->tree, SHARE_MIN);
	json_object(&j, NULL);
	json_u64(&j, "schema", 1);
	damage_json(&j, &v->damage);
	json_string(&j, "at", v->at);
	json_u64(&j, "time_ns", v->time_ns);
	json_string(&j, "space", v->space);
	json_string(&j, "measure", v->measure);
	json_string(&j, "unit", v->unit);
	json_u64(&j, "value", v->tree->nodes.items[0].sums[0]);
	json_u64(&j, "stacks", v->stacks);
	json_array(&j, "nodes");
	write_nodes(&j, v, out);
	json_array_end(&j);
	json_object_end(&j);
	str_putc(out, '\n');
}
