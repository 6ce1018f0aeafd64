/* sink.c - see sink.h. */
#include "export/sink.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define SINK_BYTES (256u << 10) /* few calls of write(), and a corner of the processor's cache */
#define SINK_GZIP 16 /* zlib: a gzip header around the window of 15 bits */

static void write_out(struct sink *s, const char *data, size_t bytes)
{
	while (bytes && !s->failed) {
		ssize_t n = write(s->fd, data, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			s->failed = -errno;
			return;
		}
		data += n;
		bytes -= (size_t)n;
	}
}

/* Compress and write. `flush` is zlib's. */
static void squeeze(struct sink *s, const void *data, size_t bytes, int flush)
{
	static unsigned char out[64u << 10];
	int rc;

	s->gzip->next_in = (unsigned char *)(uintptr_t)data;
	s->gzip->avail_in = (unsigned)bytes;
	do {
		s->gzip->next_out = out;
		s->gzip->avail_out = sizeof(out);
		rc = deflate(s->gzip, flush);
		write_out(s, (char *)out, sizeof(out) - s->gzip->avail_out);
	} while (!s->failed && rc == Z_OK && (!s->gzip->avail_out || flush == Z_FINISH));
}

int sink_init(struct sink *s, int fd, bool gzip)
{
	*s = (struct sink){.fd = fd};
	s->buffer = malloc(SINK_BYTES);
	if (!s->buffer)
		return -ENOMEM;
	if (!gzip)
		return 0;
	s->gzip = calloc(1, sizeof(*s->gzip));
	if (!s->gzip)
		return -ENOMEM;
	if (deflateInit2(s->gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + SINK_GZIP,
		MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(s->gzip);
		s->gzip = NULL;
		return -ENOMEM;
	}
	return 0;
}

static void drain(struct sink *s)
{
	if (!s->failed && s->gzip)
		squeeze(s, s->buffer, s->used, Z_NO_FLUSH);
	else if (!s->failed)
		write_out(s, s->buffer, s->used);
	s->used = 0;
}

void sink_put(struct sink *s, const void *data, size_t bytes)
{
	const char *from = data;

	s->bytes += bytes;
	while (bytes && !s->failed) {
		size_t room = SINK_BYTES - s->used, n = bytes < room ? bytes : room;

		memcpy(s->buffer + s->used, from, n);
		s->used += n;
		from += n;
		bytes -= n;
		if (s->used == SINK_BYTES)
			drain(s);
	}
}

void sink_puts(struct sink *s, const char *text)
{
	sink_put(s, text, strlen(text));
}

void sink_printf(struct sink *s, const char *format, ...)
{
	struct str text = {0};
	va_list args;

	va_start(args, format);
	str_vprintf(&text, format, args);
	va_end(args);
	sink_str(s, &text);
	str_free(&text);
}

void sink_str(struct sink *s, struct str *text)
{
	if (text->failed && !s->failed)
		s->failed = -ENOMEM;
	sink_put(s, str_text(text), text->length);
	str_clear(text);
}

int sink_finish(struct sink *s)
{
	drain(s);
	if (s->gzip && !s->failed)
		squeeze(s, NULL, 0, Z_FINISH);
	return s->failed;
}

void sink_fini(struct sink *s)
{
	if (s->gzip)
		deflateEnd(s->gzip);
	free(s->gzip);
	free(s->buffer);
	s->gzip = NULL;
	s->buffer = NULL;
}
