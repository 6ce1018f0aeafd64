/* tuned.h - numbers that were chosen by looking at programs, each with the reason for its value.
 *
 *	TUNED(unsigned, CALLS_MIN, 4u, "three calls in a row are chance; lists_py needs four");
 *
 * declares CALLS_MIN at file scope, in a source or in a header. The ordinary build has a static
 * constant, so the code is the same as with the number written out. The type is the type that
 * the literal has: `unsigned` for 4u, `uint64_t` for 8ull << 20, `double` for 0.8.
 * "why" says why this value, and not what the number bounds: its name says that.
 *
 * A table is for numbers that are used as a row, such as the strength factors of a detector. The
 * type's first member is a struct tuned_number, and further members are the file's own:
 *
 *	struct factor { struct tuned_number number; bool (*holds)(const struct callsite *); };
 *	TUNED_TABLE(struct factor, FACTORS,
 *	    {{"steady", 0.9, "of 31 leaks 28 grow so"}, grows_steadily},
 *	    {{"served", 0.5, "a server's blocks also leave with their requests"}, is_served});
 *
 * Not for numbers that dimension an array, stand in `case` or belong to a format: those stay
 * #define or enum, since a static constant is no constant expression in C.
 *
 * With `meson setup -Dtuned=true` each number is a variable that registers itself before main().
 * tests/scenarios/sensitivity uses that build; nothing else does. There
 *
 *	WHYOOM_TUNED="NAME=VALUE[,NAME=VALUE]"  sets numbers, "verdict/judge/coverage.c:NAME" where
 *a name occurs in two files, "FACTORS.steady" for a row WHYOOM_TUNED_LIST=FILE appends a line of
 *JSON for each number when the process exits: file, name, value, whether the process read it, and
 *why
 *
 * A bad value ends the process with status 2 before main(), an unknown name when it exits. */
#ifndef WHYOOM_UTIL_TUNED_H
#define WHYOOM_UTIL_TUNED_H

#include <stddef.h>

/* What a row of a TUNED_TABLE begins with. */
struct tuned_number {
	const char *name;
	double value;
	const char *why;
};

#ifndef WHYOOM_TUNED_BUILD

#define TUNED(type, NAME, value, why) static const type NAME __attribute__((unused)) = (value)
#define TUNED_TABLE(type, NAME, ...) static const type NAME[] = {__VA_ARGS__}

#else

/* How the bytes of a number are read. */
enum tuned_kind {
	TUNED_SIGNED,
	TUNED_UNSIGNED,
	TUNED_REAL,
};

/* Register one number and set it as WHYOOM_TUNED says. All pointers must outlive the process. The
 * number lies on a page of its own, which is closed until the first read. */
void tuned_register(const char *file, const char *name, const char *why, void *number, size_t size,
    enum tuned_kind kind);

/* Register `count` rows of `size` bytes, each of which begins with a struct tuned_number. */
void tuned_register_table(
    const char *file, const char *name, void *rows, size_t size, size_t count);

/* Only tuned numbers are in this section, so each has its pages to itself. */
#define TUNED_PAGES __attribute__((section("tuned"), aligned(4096), unused))
#define TUNED(type, NAME, number, why)                                                             \
	static type NAME TUNED_PAGES = (number);                                                   \
	__attribute__((constructor)) static void NAME##_register(void)                             \
	{                                                                                          \
		tuned_register(__FILE__, #NAME, why, &NAME, sizeof(NAME),                          \
		    (type)0.5 != 0 ? TUNED_REAL                                                    \
		    : (type)-1 > 0 ? TUNED_UNSIGNED                                                \
				   : TUNED_SIGNED);                                                \
	}                                                                                          \
	struct tuned_number
#define TUNED_TABLE(type, NAME, ...)                                                               \
	static type NAME[] TUNED_PAGES = {__VA_ARGS__};                                            \
	__attribute__((constructor)) static void NAME##_register(void)                             \
	{                                                                                          \
		tuned_register_table(                                                              \
		    __FILE__, #NAME, NAME, sizeof(NAME[0]), sizeof(NAME) / sizeof(NAME[0]));       \
	}                                                                                          \
	struct tuned_number

#endif
#endif
