/* threads.h - CROWD threads serve requests. */
static long next_request;

static void *worker(void *unused)
{
	long number;

	(void)unused;
	while ((number = __atomic_fetch_add(&next_request, 1, __ATOMIC_RELAXED)) < REQUESTS)
		serve(number);
	return NULL;
}

int main(void)
{
	pthread_t threads[CROWD];

	start();
	for (int i = 0; i < CROWD; i++)
		if (pthread_create(&threads[i], NULL, worker, NULL))
			out_of_memory();
	for (int i = 0; i < CROWD; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
