/* loop.h - one thread serves one request after the other. */
int main(void)
{
	start();
	for (long number = 0; number < REQUESTS; number++)
		serve(number);
	return 0;
}
