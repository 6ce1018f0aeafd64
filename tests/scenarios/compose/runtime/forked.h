/* forked.h - two children serve requests; the first one that fails ends the service. */
#include <signal.h>
#include <sys/wait.h>

int main(void)
{
	pid_t children[2];
	int status = 0, failed = 0;

	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i])
			continue;
		start();
		for (long number = i; number < REQUESTS; number += 2)
			serve(number);
		_exit(0);
	}
	for (int i = 0; i < 2; i++)
		if (wait(&status) > 0 && status && !failed) {
			failed = 1;
			for (int k = 0; k < 2; k++)
				kill(children[k], SIGTERM);
		}
	return failed;
}
