/* c_stacks.h - a block is a thread that waits, with a stack of that size. */
#include "common.h"

struct stack {
	pthread_t thread;
	pthread_mutex_t end;
};
typedef struct block {
	struct stack *stack;
	long size;
} block;

static void *stack_main(void *argument)
{
	struct stack *s = argument;
	volatile char used[16384];

	memset((char *)used, 1, sizeof(used));
	pthread_mutex_lock(&s->end);
	pthread_mutex_unlock(&s->end);
	return NULL;
}
#define NONE() ((block){NULL, 0})
#define SIZE(b) ((b).size)
static void drop_stack(block b)
{
	if (!b.stack)
		return;
	pthread_mutex_unlock(&b.stack->end);
	pthread_join(b.stack->thread, NULL);
	free(b.stack);
}
#define DROP(b) drop_stack(b)
#define MAKE(n)                                                                                    \
	({                                                                                         \
		block made = {malloc(sizeof(struct stack)), (n)};                                  \
		pthread_attr_t attributes;                                                         \
		if (!made.stack)                                                                   \
			out_of_memory();                                                           \
		made.size = made.size < 65536 ? 65536 : made.size & -4096L;                        \
		pthread_mutex_init(&made.stack->end, NULL);                                        \
		pthread_mutex_lock(&made.stack->end);                                              \
		pthread_attr_init(&attributes);                                                    \
		pthread_attr_setstacksize(&attributes, (size_t)made.size);                         \
		if (pthread_create(&made.stack->thread, &attributes, stack_main, made.stack))      \
			out_of_memory();                                                           \
		made;                                                                              \
	})
#include "c_store.h"
