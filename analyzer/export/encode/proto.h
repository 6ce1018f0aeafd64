/*
 * proto.h - writes protobuf messages field by field, without their .proto files. A message is built
 * in memory with its parts, whose lengths are put before them when they end, and then goes out;
 * so a file of many messages needs room for the largest one only.
 */
#ifndef ANALYZER_EXPORT_PROTO_H
#define ANALYZER_EXPORT_PROTO_H

#include <stddef.h>
#include <stdint.h>

#include "util/text/str.h"

#define PROTO_DEPTH 8u /* messages within messages */

struct proto {
	struct str text; /* the bytes so far; `failed`: no memory, or parts nested too deep */
	size_t begins[PROTO_DEPTH];
	unsigned depth;
};

/* A number without a field, for packed lists between proto_begin() and proto_end(). */
void proto_varint(struct proto *p, uint64_t value);
/* A field of type int32, int64, uint32, uint64, bool or enum; negative numbers as their two's
 * complement. */
void proto_u64(struct proto *p, uint32_t field, uint64_t value);
/* A field of type fixed64 or sfixed64, or double. */
void proto_fixed64(struct proto *p, uint32_t field, uint64_t value);
void proto_double(struct proto *p, uint32_t field, double value);
/* A field of type bytes or string. */
void proto_bytes(struct proto *p, uint32_t field, const void *data, size_t bytes);
/* The same of a name from a trace, which strings must not hold as it is: invalid UTF-8 becomes
 * U+FFFD. NULL: empty. */
void proto_text(struct proto *p, uint32_t field, const char *text);
/* A field that is a message, or a packed list: what follows is in it. */
void proto_begin(struct proto *p, uint32_t field);
void proto_end(struct proto *p);
void proto_free(struct proto *p);

#endif
