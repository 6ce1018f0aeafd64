/* A completion server whose slots are opened with the first request: each has a context of its own,
   of the largest size that is configured. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAYERS = 12, WIDTH = 128, N_CTX = 4096, N_PARALLEL = 64 };

struct slot {
	float *kv;
	int used;
};

struct server {
	float *weights[LAYERS];
	struct slot *slots;
	int opened;
};

static float *need(size_t bytes)
{
	float *p = malloc(bytes);
	if (!p) {
		fprintf(stderr, "llama: failed to allocate buffer of size %zu\n", bytes);
		exit(1);
	}
	memset(p, 0, bytes);
	return p;
}

static void load(struct server *s)
{
	for (int i = 0; i < LAYERS; i++)
		s->weights[i] = need(3 << 20);
}

static void open_slots(struct server *s)
{
	s->slots = calloc(N_PARALLEL, sizeof *s->slots);
	for (int i = 0; i < N_PARALLEL; i++)
		s->slots[i].kv = need(sizeof(float) * 2 * LAYERS * WIDTH * N_CTX / 4);
	s->opened = N_PARALLEL;
}

static void complete(struct server *s, int request, int tokens)
{
	if (!s->opened)
		open_slots(s);
	struct slot *slot = &s->slots[request % 2];
	char *prompt = malloc(tokens * 5);
	float *logits = need(32000 * sizeof *logits);
	memset(prompt, 'p', tokens * 5);
	for (slot->used = 0; slot->used < tokens; slot->used++)
		slot->kv[slot->used * WIDTH] = prompt[slot->used];
	free(logits);
	free(prompt);
}

int main(void)
{
	struct server s = {0};
	load(&s);
	usleep(300000);
	for (int i = 0; i < 400; i++) {
		complete(&s, i, 60 + i % 200);
		usleep(5000);
	}
	return 0;
}
