/* A chat whose every turn is kept, and whose prompt is built anew from all turns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif
#define MESSAGE_BYTES (2000000 * SCALE)

struct message {
	char *text;
	size_t length;
	struct message *next;
};

static struct message *first, *last;
static size_t history_bytes;

static void *or_die(void *p)
{
	if (!p) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	return p;
}

__attribute__((noinline)) static void remember(unsigned turn)
{
	struct message *m = or_die(malloc(sizeof(*m)));

	m->length = MESSAGE_BYTES + turn % 7 * 1000;
	m->text = or_die(malloc(m->length));
	memset(m->text, 'a' + turn % 26, m->length);
	m->next = NULL;
	if (last)
		last->next = m;
	else
		first = m;
	last = m;
	history_bytes += m->length;
}

__attribute__((noinline)) static char *build_prompt(void)
{
	char *prompt = or_die(malloc(history_bytes + 1)), *at = prompt;

	for (struct message *m = first; m; m = m->next) {
		memcpy(at, m->text, m->length);
		at += m->length;
	}
	*at = '\0';
	return prompt;
}

__attribute__((noinline)) static unsigned answer(const char *prompt)
{
	size_t room = 65536;
	unsigned sum = 0;
	char *scratch = or_die(malloc(room));

	for (size_t i = 0; i < room && prompt[i]; i++)
		sum += (unsigned char)(scratch[i] = prompt[i]);
	free(scratch);
	return sum;
}

int main(void)
{
	unsigned sum = 0;

	for (unsigned turn = 0; turn < 100000; turn++) {
		char *prompt;

		remember(turn);
		prompt = build_prompt();
		sum += answer(prompt);
		free(prompt);
	}
	printf("%u\n", sum);
	return 0;
}
