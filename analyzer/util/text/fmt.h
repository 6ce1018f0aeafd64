/*
 * fmt.h - formats numbers for people. Each function writes into `f` and returns its text.
 */
#ifndef ANALYZER_UTIL_FMT_H
#define ANALYZER_UTIL_FMT_H

#include <stdint.h>

struct str;

struct fmt {
	char text[64];
};

/* "0 B", "1023 B", "1.25 GiB", "117 MiB": three significant digits. */
const char *fmt_size(struct fmt *f, uint64_t bytes);
/* As fmt_size(), with enough digits to differ from another size: "42.02 MiB" beside "42.00 MiB". */
const char *fmt_size_apart(struct fmt *f, uint64_t bytes, uint64_t other);
/* As fmt_size() with a sign: "+1.25 GiB", "-3.00 KiB", "0 B". */
const char *fmt_size_signed(struct fmt *f, int64_t bytes);
/* "1.25 GiB (1,342,177,280 bytes)" */
const char *fmt_size_exact(struct fmt *f, uint64_t bytes);
/* "1,342,177,280" */
const char *fmt_count(struct fmt *f, uint64_t n);
const char *fmt_ordinal(struct fmt *f, uint64_t n); /* "1st", "12th", "5,412th" */
/* "850 ns", "12.3 us", "4.56 ms", "1.50 s", "2 min 03 s", "3 h 05 min", "2 d 04 h" */
const char *fmt_duration(struct fmt *f, uint64_t ns);
/* "56 %", "0.4 %", "<0.1 %"; "-" if `whole` is 0 */
const char *fmt_percent(struct fmt *f, uint64_t part, uint64_t whole);

/* Parse "64KiB", "2 GiB", "1.5g", "4096"; K, KB and KiB are all 1024. 0; -EINVAL; -ERANGE: it does
 * not fit. */
int fmt_parse_size(const char *text, uint64_t *bytes);

/* Append a function's name, shortened: template arguments of more than 40 characters become `dots`
 * ("<..>"), Rust's "<T as Trait>::f" becomes "T::f". */
void fmt_function(struct str *to, const char *function, const char *dots);

#endif
