// Executes a program many times and tells how long each took, from before its birth until its end.
//
//   cc -O2 -o exec_storm exec_storm.c
//   exec_storm [-u UID] COUNT WIDTH PROGRAM [ARGUMENT...]
//
// WIDTH processes run at a time, with -u each as that user from before its exec. Prints one line: execs COUNT failed N
// median_ns N p99_ns N longest_ns N total_ns N; failed are those whose exit status is not 0.
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct running {
	pid_t pid;
	long start;
};

static long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv, char **environment)
{
	uid_t user = 0;

	if (argc > 2 && strcmp(argv[1], "-u") == 0) {
		user = atol(argv[2]);
		argc -= 2;
		argv += 2;
	}
	long count = argc > 3 ? atol(argv[1]) : 0, width = argc > 3 ? atol(argv[2]) : 0;
	long started = 0, ended = 0, failed = 0;

	if (count < 1 || width < 1)
		errx(2, "usage: exec_storm [-u UID] COUNT WIDTH PROGRAM [ARGUMENT...]");
	long *times = calloc(count, sizeof *times);
	struct running *running = calloc(width, sizeof *running);
	if (!times || !running)
		err(1, "calloc");

	long begin = now();
	while (ended < count) {
		for (long i = 0; i < width && started < count; i++) {
			if (running[i].pid)
				continue;
			running[i].start = now();
			// not posix_spawn, which waits for the exec: then never two would wait for a gate
			running[i].pid = fork();
			if (running[i].pid < 0)
				err(1, "fork");
			if (running[i].pid == 0) {
				if (user && setuid(user) != 0)
					_exit(126);
				execve(argv[3], argv + 3, environment);
				_exit(127);
			}
			started++;
		}
		int status;
		pid_t pid = wait(&status);
		if (pid < 0)
			err(1, "wait");
		long end = now();
		for (long i = 0; i < width; i++) {
			if (running[i].pid != pid)
				continue;
			times[ended++] = end - running[i].start;
			running[i].pid = 0;
			failed += status != 0;
		}
	}
	long total = now() - begin;
	qsort(times, count, sizeof *times, ascending);
	printf("execs %ld failed %ld median_ns %ld p99_ns %ld longest_ns %ld total_ns %ld\n", count, failed,
	       times[count / 2], times[count - 1 - count / 100], times[count - 1], total);
	return 0;
}
