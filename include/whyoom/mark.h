/*
 * mark.h - lets a server mark where its requests begin and end. Header only, nothing to link. With
 * libwhyoom.so preloaded, a mark becomes an event of the trace; in other processes it does nothing.
 *
 *	uint64_t request = whyoom_request_begin("POST /chat");
 *	...
 *	whyoom_request_end(request);
 *
 * After whyoom_request_begin() the calling thread works for the request; with asyncio's or trio's
 * tasks, or green threads, the calling task does. Other threads that work for it mark that:
 *
 *	whyoom_request_enter(request);
 *	...
 *	whyoom_request_leave(request);
 *
 * A thread that accepts requests and hands them on leaves them, too. Any thread may end a request,
 * for all threads. Requests nest: the one entered last counts.
 *
 * A name is a fixed word for all requests of a kind: never a prompt, a user or an id. It is copied:
 * at most 127 bytes of it, and 1,000 distinct names; NULL: no name.
 *
 * Call from any thread at any time. A mark never fails, blocks or changes errno, takes well under a
 * microsecond, and keeps no memory, so a missing end does no harm. For x86-64 and aarch64, ELF; C99
 * or C++ with GNU extensions. Elsewhere, or with WHYOOM_NO_MARKS defined, all functions are empty.
 * docs/marks.md shows the same from Python.
 */
#ifndef WHYOOM_MARK_H
#define WHYOOM_MARK_H

#include <stdint.h>

/*
 * Not a plain weak reference: linkers resolve one to 0 in programs that are not
 * position-independent. The loader always fills the global offset table.
 */
#if defined(WHYOOM_NO_MARKS) || !defined(__ELF__)
#define WHYOOM_FIND_(symbol, place) (place) = 0
#elif defined(__x86_64__)
#define WHYOOM_FIND_(symbol, place)                                                                \
	__asm__(".weak " symbol "\n\tmovq " symbol "@GOTPCREL(%%rip), %0" : "=r"(place))
#elif defined(__aarch64__)
#define WHYOOM_FIND_(symbol, place)                                                                \
	__asm__(".weak " symbol "\n\tadrp %0, :got:" symbol "\n\tldr %0, [%0, :got_lo12:" symbol   \
		"]"                                                                                \
		: "=r"(place))
#else
#define WHYOOM_FIND_(symbol, place) (place) = 0
#endif

/* The inline function has another linker name than the symbol that it looks for. */
#define WHYOOM_MARK_(type, name, parameters, arguments, otherwise)                                 \
	static inline __attribute__((unused)) type name parameters __asm__("inline_" #name);       \
	static inline __attribute__((unused)) type name parameters                                 \
	{                                                                                          \
		type(*whyoom_found_) parameters;                                                   \
		WHYOOM_FIND_(#name, whyoom_found_);                                                \
		if (!whyoom_found_)                                                                \
			return otherwise;                                                          \
		return whyoom_found_ arguments;                                                    \
	}

/* Begin a request. Returns its id; 0: nothing records. */
WHYOOM_MARK_(uint64_t, whyoom_request_begin, (const char *name), (name), 0)
/* Begin a request with the caller's id: a number under 2^48 that no open request has. Larger ids
 * are those that whyoom_request_begin() returns. */
WHYOOM_MARK_(void, whyoom_request_begin_id, (uint64_t id, const char *name), (id, name), )
WHYOOM_MARK_(void, whyoom_request_end, (uint64_t id), (id), )
WHYOOM_MARK_(void, whyoom_request_enter, (uint64_t id), (id), )
WHYOOM_MARK_(void, whyoom_request_leave, (uint64_t id), (id), )

/* Report the length of the input in tokens: right after the begin, before memory is allocated for
 * it, and again whenever it has grown. */
WHYOOM_MARK_(void, whyoom_request_tokens, (uint64_t id, uint64_t tokens), (id, tokens), )

/* Begin and end a phase of the whole process: "loading", "warm-up", "serving", or another word. */
WHYOOM_MARK_(uint64_t, whyoom_phase_begin, (const char *name), (name), 0)
WHYOOM_MARK_(void, whyoom_phase_end, (uint64_t id), (id), )

/* Mark a point in time. */
WHYOOM_MARK_(void, whyoom_point, (const char *name), (name), )

#undef WHYOOM_MARK_
#undef WHYOOM_FIND_

#endif
