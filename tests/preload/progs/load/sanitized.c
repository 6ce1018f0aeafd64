/* sanitized.c - built with a sanitizer: a thread, blocks, a child. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work(void *arg)
{
	char *kept[64] = {0};

	for (int i = 0; i < 10000; i++) {
		free(kept[i % 64]);
		kept[i % 64] = malloc((size_t)i % 3000 + 1);
		memset(kept[i % 64], i, (size_t)i % 3000 + 1);
	}
	for (int i = 0; i < 64; i++)
		free(kept[i]);
	return arg;
}

int main(void)
{
	pthread_t t;
	int status;

	pthread_create(&t, NULL, work, NULL);
	work(NULL);
	pthread_join(t, NULL);
	if (!fork())
		_exit(work(NULL) ? 1 : 7);
	wait(&status);
	printf("%d\n", WEXITSTATUS(status));
	return 5;
}
