/* c_small.h - a block is a list of nodes of 40 to 100 bytes each. */
#include "common.h"

struct node {
	struct node *next;
	char text[];
};
typedef struct block {
	struct node *first;
	long size;
} block;

#define NONE() ((block){NULL, 0})
#define SIZE(b) ((b).size)
static void drop_nodes(struct node *n)
{
	while (n) {
		struct node *next = n->next;

		free(n);
		n = next;
	}
}
#define DROP(b) drop_nodes((b).first)
#define MAKE(n)                                                                                    \
	({                                                                                         \
		block made = {NULL, (n)};                                                          \
		for (long left = made.size; left > 0;) {                                           \
			long bytes = 40 + left % 61;                                               \
			struct node *node = malloc((size_t)bytes);                                 \
			if (!node)                                                                 \
				out_of_memory();                                                   \
			node->next = made.first;                                                   \
			memset(node->text, 1, (size_t)bytes - sizeof(*node));                      \
			made.first = node;                                                         \
			left -= bytes + 8;                                                         \
		}                                                                                  \
		made;                                                                              \
	})
#include "c_store.h"
