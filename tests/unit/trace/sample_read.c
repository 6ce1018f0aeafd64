#include "sample.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Plain reading of a file that this build made: not by the code under test. */
void sample_read(const char *path, struct sample *out)
{
	static unsigned char image[1 << 20];
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
	FILE *f = fopen(path, "rb");

	memset(out, 0, sizeof(*out));
	if (!f || fread(image, 1, sizeof(image), f) < sizeof(*header))
		abort();
	fclose(f);
	for (int i = 0; i < header->e_shnum; i++) {
		const Elf64_Shdr *s = (const Elf64_Shdr *)(image + header->e_shoff) + i;
		const Elf64_Shdr *names =
		    (const Elf64_Shdr *)(image + header->e_shoff) + s->sh_link;

		if (s->sh_type == SHT_DYNSYM) {
			for (size_t k = 0; k < s->sh_size / sizeof(Elf64_Sym); k++) {
				const Elf64_Sym *sym =
				    (const Elf64_Sym *)(image + s->sh_offset) + k;
				const char *name =
				    (const char *)image + names->sh_offset + sym->st_name;

				if (!strcmp(name, "sample_outer")) {
					out->outer = sym->st_value;
					out->outer_size = sym->st_size;
				} else if (!strcmp(name, "_ZN6sample4sinkEi")) {
					out->sink = sym->st_value;
					out->sink_size = sym->st_size;
				} else if (!strcmp(name, "_RNvCs1234_7mycrate3foo")) {
					out->rust = sym->st_value;
				} else if (!strcmp(name, "_ZN6sample5cloneEi.part.0")) {
					out->clone = sym->st_value;
				}
			}
		} else if (s->sh_type == SHT_NOTE) {
			const Elf64_Nhdr *note = (const Elf64_Nhdr *)(image + s->sh_offset);

			if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz <= 64) {
				memcpy(out->build_id, (const char *)(note + 1) + 4, note->n_descsz);
				out->build_id_bytes = note->n_descsz;
			}
		}
	}
	/* The first call in outer: x86-64's E8 or FF 15, aarch64's BL. */
	for (uint64_t at = out->outer; at < out->outer + out->outer_size && !out->call; at++) {
		if (header->e_machine == EM_X86_64 && image[at] == 0xe8)
			out->call = at + 5;
		else if (header->e_machine == EM_X86_64 && image[at] == 0xff &&
			 image[at + 1] == 0x15)
			out->call = at + 6;
		else if (header->e_machine == EM_AARCH64 && at % 4 == 0 &&
			 (image[at + 3] & 0xfc) == 0x94)
			out->call = at + 4;
	}
}

void sample_copy(const char *command, char *path)
{
	char line[512];
	int fd;

	strcpy(path, "/tmp/whyoom-sample-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		abort();
	close(fd);
	/* The formats are the tests' own. */
	_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wformat-nonliteral\"")
	    snprintf(line, sizeof(line), command, SAMPLE, path);
	_Pragma("GCC diagnostic pop") if (system(line)) abort();
}

unsigned sample_line(const char *text)
{
	FILE *f = fopen(SAMPLE_SOURCE, "r");
	unsigned number = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		number++;
		if (strstr(line, text)) {
			fclose(f);
			return number;
		}
	}
	abort();
}
