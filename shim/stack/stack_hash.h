/*
 * stack_hash.h - the hash of a stack, built frame by frame from the root inwards, so that each
 * frame can keep the hash of the stack up to it. 128 bits, of which 96 decide that two stacks are
 * equal: see stack.c.
 */
#ifndef SHIM_STACK_HASH_H
#define SHIM_STACK_HASH_H

#include <stdint.h>

struct stack_hash {
	uint64_t a, b;
};

#define STACK_HASH_ROOT                                                                            \
	((struct stack_hash){UINT64_C(0x243f6a8885a308d3), UINT64_C(0x13198a2e03707344)})

/* A frame's tag is that of its neighbour more often than not: its part is worked out once. */
static inline struct stack_hash stack_hash_tag(uint32_t tag)
{
	return (struct stack_hash){
	    tag * UINT64_C(0xd6e8feb86659fd93), tag * UINT64_C(0xa0761d6478bd642f)};
}

static inline uint64_t stack_hash_turn(uint64_t v)
{
	return v << 32 | v >> 32;
}

/*
 * Every step can be undone: for a given frame different states stay different, and for a given
 * state different frames do. The halves meet a frame in different ways, and are multiplied by
 * different numbers.
 */
static inline struct stack_hash stack_hash_next(
    struct stack_hash h, uint64_t value, struct stack_hash tag)
{
	h.a = stack_hash_turn((h.a ^ (value + tag.a)) * UINT64_C(0xff51afd7ed558ccd));
	h.b = stack_hash_turn((h.b + (value ^ tag.b)) * UINT64_C(0xc4ceb9fe1a85ec53));
	return h;
}

#endif
