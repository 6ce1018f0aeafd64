/*
 * stack_hash.h - the hash of a stack, built frame by frame from the root inwards, so that each
 * frame keeps the hash of the stack up to it. 128 bits, of which 96 decide whether two stacks are
 * equal (stack.c).
 */
#ifndef SHIM_STACK_HASH_H
#define SHIM_STACK_HASH_H

#include <stdint.h>

struct stack_hash {
	uint64_t a, b;
};

#define STACK_HASH_ROOT                                                                            \
	((struct stack_hash){UINT64_C(0x243f6a8885a308d3), UINT64_C(0x13198a2e03707344)})

/* Hashes a tag. Neighbouring frames mostly share it, so callers reuse the result. */
static inline struct stack_hash stack_hash_tag(uint32_t tag)
{
	return (struct stack_hash){
	    tag * UINT64_C(0xd6e8feb86659fd93), tag * UINT64_C(0xa0761d6478bd642f)};
}

static inline uint64_t stack_hash_turn(uint64_t v)
{
	return v << 32 | v >> 32;
}

/* Adds a frame. Each step is a bijection of the state for a given frame, and of the frame for a
 * given state; the two halves mix the frame in different ways. */
static inline struct stack_hash stack_hash_next(
    struct stack_hash h, uint64_t value, struct stack_hash tag)
{
	h.a = stack_hash_turn((h.a ^ (value + tag.a)) * UINT64_C(0xff51afd7ed558ccd));
	h.b = stack_hash_turn((h.b + (value ^ tag.b)) * UINT64_C(0xc4ceb9fe1a85ec53));
	return h;
}

#endif
