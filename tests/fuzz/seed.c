/* seed.c - traces in the fuzzers' form: seed OUT COMMAND TRACE [SUPERVISOR]. Parts beyond that
 * form's room are cut. */
#include <stdio.h>
#include <stdlib.h>

#include "sparse.h"

int main(int argc, char **argv)
{
	struct sparse s;
	uint8_t *out = malloc(1u << 20);
	size_t bytes;
	FILE *f;

	if (argc < 4 || argc > 5 || !out)
		return 2;
	sparse_read(&s, NULL, 0);
	s.command = (uint8_t)atoi(argv[2]);
	for (int i = 3; i < argc; i++) {
		struct sparse_file *to = &s.files[i - 3];

		f = fopen(argv[i], "rb");
		if (!f)
			return 2;
		to->bytes = fread(to->data, 1, SPARSE_BYTES, f);
		fclose(f);
	}
	bytes = sparse_write(&s, out, 1u << 20);
	sparse_fini(&s);
	f = fopen(argv[1], "wb");
	if (!f || fwrite(out, 1, bytes, f) != bytes || fclose(f))
		return 2;
	free(out);
	return 0;
}
