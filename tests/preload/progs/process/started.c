/* started.c - a started program: prints its arguments, and exits with 5. With "run PROGRAM...":
 * starts that and prints how it ended. Built in every way in which a program can be linked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char *volatile block = malloc(100000);
	int status = 0;

	memset(block, 1, 100000);
	if (argc > 2 && !strcmp(argv[1], "run")) {
		pid_t pid = fork();

		if (!pid) {
			execvp(argv[2], argv + 2);
			_exit(99);
		}
		waitpid(pid, &status, 0);
		printf("it ended with %x\n", status);
	} else {
		for (int i = 1; i < argc; i++)
			printf("%s ", argv[i]);
		printf("%d\n", block[99999]);
	}
	free(block);
	return 5;
}
