/*
 * mark.h - for servers that want to say themselves when a request begins and ends. All in this
 * file: nothing is linked. In a process that libwhyoom.so was preloaded into, a mark becomes an
 * event of the trace; in any other it does nothing.
 *
 *	uint64_t request = whyoom_request_begin("POST /chat");
 *	...
 *	whyoom_request_end(request);
 *
 * From its begin on, the calling thread works for the request; with asyncio's or trio's tasks, or
 * green threads, the calling task. Where others do a part of the work, they say so:
 *
 *	whyoom_request_enter(request);
 *	...
 *	whyoom_request_leave(request);
 *
 * Who takes requests in and hands them on leaves them, too. A request may be ended from any thread;
 * then nobody works for it any more. Requests nest, the one entered last counts.
 *
 * A name is a word of the program's, the same for all requests of a kind: never a prompt, a user or
 * an id. At most 127 bytes of it are kept, and 1,000 different ones; NULL is no name. It is copied.
 *
 * Any thread, any moment; never fails, blocks or changes errno. A mark takes well under a
 * microsecond, and keeps nothing: one whose end never comes does no harm. x86-64 and aarch64, ELF;
 * C99 or C++ with GNU extensions. Elsewhere, or with WHYOOM_NO_MARKS defined, all of it is empty.
 * docs/marks.md shows the same from Python.
 */
#ifndef WHYOOM_MARK_H
#define WHYOOM_MARK_H

#include <stdint.h>

/*
 * A weak reference would do, were it not that linkers resolve one to nothing in programs that are
 * not position-independent. The global offset table is always filled by the loader.
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

/* The inline function has another name for the linker than the one that it looks for. */
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

/* A request begins. The id that it is known by from here on; 0 where nothing records. */
WHYOOM_MARK_(uint64_t, whyoom_request_begin, (const char *name), (name), 0)
/* The same with an id of the caller's: any number under 2^48 that no request has which has not
 * ended yet. Larger ones are those that are handed out. */
WHYOOM_MARK_(void, whyoom_request_begin_id, (uint64_t id, const char *name), (id, name), )
WHYOOM_MARK_(void, whyoom_request_end, (uint64_t id), (id), )
WHYOOM_MARK_(void, whyoom_request_enter, (uint64_t id), (id), )
WHYOOM_MARK_(void, whyoom_request_leave, (uint64_t id), (id), )

/* How long its input is, in tokens; again when it got longer. Also right after the begin, before
 * anything is made for it. */
WHYOOM_MARK_(void, whyoom_request_tokens, (uint64_t id, uint64_t tokens), (id, tokens), )

/* Phases of the whole process: "loading", "warm-up" and "serving" say most, other words are free.
 */
WHYOOM_MARK_(uint64_t, whyoom_phase_begin, (const char *name), (name), 0)
WHYOOM_MARK_(void, whyoom_phase_end, (uint64_t id), (id), )

/* Something happened. */
WHYOOM_MARK_(void, whyoom_point, (const char *name), (name), )

#undef WHYOOM_MARK_
#undef WHYOOM_FIND_

#endif
