/* elf_seed.c - a small program with debug information, the seed of fuzz-elf. */
struct block {
	struct block *next;
	long bytes;
};

static inline long sum(const struct block *b)
{
	long bytes = 0;

	for (; b; b = b->next)
		bytes += b->bytes;
	return bytes;
}

long live(const struct block *b);
long live(const struct block *b)
{
	return sum(b) + (b ? sum(b->next) : 0);
}
