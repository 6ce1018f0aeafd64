/* c_store.h - a store in C: an array of blocks that doubles. Threads share it under a lock. */
typedef struct store {
	block *blocks;
	long first, count, room;
} store;

static pthread_mutex_t store_lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((unused)) static void store_grow(store *s, long count)
{
	while (s->first + count > s->room) {
		long room = s->room ? 2 * s->room : 16;
		block *more = (block *)realloc(s->blocks, (size_t)room * sizeof(block));

		if (!more)
			out_of_memory();
		memset(more + s->room, 0, (size_t)(room - s->room) * sizeof(block));
		s->blocks = more;
		s->room = room;
	}
}

__attribute__((unused)) static void store_keep(store *s, block b)
{
	pthread_mutex_lock(&store_lock);
	store_grow(s, s->count + 1);
	s->blocks[s->first + s->count++] = b;
	pthread_mutex_unlock(&store_lock);
}

__attribute__((unused)) static void store_put(store *s, long place, block b)
{
	block old = NONE();

	pthread_mutex_lock(&store_lock);
	store_grow(s, place + 1);
	if (place < s->count)
		old = s->blocks[s->first + place];
	else
		s->count = place + 1;
	s->blocks[s->first + place] = b;
	pthread_mutex_unlock(&store_lock);
	DROP(old);
}

__attribute__((unused)) static void store_pop(store *s)
{
	block old = NONE();

	pthread_mutex_lock(&store_lock);
	if (s->count) {
		old = s->blocks[s->first++];
		s->count--;
	}
	if (s->first > 64 && s->first > s->count) {
		memmove(s->blocks, s->blocks + s->first, (size_t)s->count * sizeof(block));
		memset(s->blocks + s->count, 0, (size_t)s->first * sizeof(block));
		s->first = 0;
	}
	pthread_mutex_unlock(&store_lock);
	DROP(old);
}

__attribute__((unused)) static void store_pop_last(store *s)
{
	block old = NONE();

	pthread_mutex_lock(&store_lock);
	if (s->count) {
		old = s->blocks[s->first + --s->count];
		s->blocks[s->first + s->count] = NONE();
	}
	pthread_mutex_unlock(&store_lock);
	DROP(old);
}

__attribute__((unused)) static void store_clear(store *s)
{
	while (s->count)
		store_pop_last(s);
}

__attribute__((unused)) static block store_item(store *s, long place)
{
	return place < s->count ? s->blocks[s->first + place] : NONE();
}

__attribute__((unused)) static long store_len(store *s)
{
	return s->count;
}

__attribute__((unused)) static long store_total(store *s)
{
	long sum = 0;

	pthread_mutex_lock(&store_lock);
	for (long i = 0; i < s->count; i++)
		sum += SIZE(s->blocks[s->first + i]);
	pthread_mutex_unlock(&store_lock);
	return sum;
}
