/* workers.c - four threads that serve at their own pace: how many requests overlap differs from run
 * to run, and so does what each thread has at the end. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 4
#define SHARED 200
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *shared[SHARED], *model;
static int left = 400;
static char *kept[4096];
static int kept_count;

static void *filled(size_t n)
{
	char *p = malloc(n);

	return memset(p, 1, n);
}

static void publish(unsigned key, unsigned *seed)
{
	char *p = filled(2048 + rand_r(seed) % 2048); /*@publish*/

	pthread_mutex_lock(&lock);
	free(shared[key % SHARED]);
	shared[key % SHARED] = p;
	pthread_mutex_unlock(&lock);
}

static void serve(unsigned *seed)
{
	struct timespec pause = {0, 20000 + rand_r(seed) % 400000};
	char *input = filled(96 << 10); /*@input*/
	char *output = filled(48 << 10); /*@output*/

	nanosleep(&pause, NULL);
	publish((unsigned)rand_r(seed), seed);
	/*@serve*/
	free(output);
	free(input);
}

static void *work(void *arg)
{
	unsigned seed = (unsigned)time(NULL) ^ (unsigned)getpid() * 31 ^ (unsigned)(long)arg * 7;
	char *scratch = filled(200 << 10); /*@scratch*/

	for (;;) {
		int go;

		pthread_mutex_lock(&lock);
		go = left-- > 0;
		pthread_mutex_unlock(&lock);
		if (!go)
			break;
		serve(&seed);
	}
	free(scratch);
	return NULL;
}

int main(void)
{
	pthread_t threads[WORKERS];

	model = filled(6 << 20); /*@model*/
	for (long i = 0; i < WORKERS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	return model[0] == 2 || kept_count == 4095;
}
