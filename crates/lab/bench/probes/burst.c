// Starts long-lived processes in a burst of short ones, and tells how many of them are not in the right group.
//
//   cc -O2 -o burst burst.c
//   burst SHORT LONG WAIT PROGRAM LINE
//
// SHORT processes are born, do nothing and end, as fast as can be; evenly among them LONG ones execute PROGRAM (late,
// which then sleeps). WAIT milliseconds after the last birth it reads /proc/PID/cgroup of the long-lived ones, prints
// "long LONG outside N", those whose file does not hold the line, and ends them.
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// short ones that may be there at a time
#define WIDTH 64

static int inside(pid_t pid, const char *line)
{
	char path[64], groups[8192] = "\n";
	snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0 || read(file, groups + 1, sizeof groups - 2) <= 0)
		errx(1, "process %d is gone", pid);
	close(file);
	size_t size = strlen(line);
	char *found = groups;
	while ((found = strstr(found + 1, line)) && !(found[-1] == '\n' && found[size] == '\n'))
		;
	return found != NULL;
}

int main(int argc, char **argv)
{
	long short_ones = argc == 6 ? atol(argv[1]) : 0, long_ones = argc == 6 ? atol(argv[2]) : 0;
	long started = 0, here = 0, outside = 0;

	if (short_ones < 1 || long_ones < 1 || long_ones > short_ones)
		errx(2, "usage: burst SHORT LONG WAIT PROGRAM LINE");
	long wait_for = atol(argv[3]);
	pid_t *pids = calloc(long_ones, sizeof *pids), parent = getpid();
	if (!pids)
		err(1, "calloc");

	for (long i = 0; i < short_ones; i++) {
		if (started < long_ones && started * short_ones <= i * long_ones) {
			pid_t pid = fork();
			if (pid < 0)
				err(1, "fork");
			if (pid == 0) {
				// they must not outlive a burst that is ended early
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				if (getppid() == parent)
					execl(argv[4], argv[4], "600000000", argv[5], NULL);
				_exit(127);
			}
			pids[started++] = pid;
		}
		pid_t pid = fork();
		if (pid < 0)
			err(1, "fork");
		if (pid == 0)
			_exit(0);
		here++;
		// the long-lived ones do not end by themselves: what can be waited for is a short one
		while (here > 0 && waitpid(-1, NULL, here < WIDTH ? WNOHANG : 0) > 0)
			here--;
	}

	struct timespec pause = { wait_for / 1000, wait_for % 1000 * 1000000 };
	nanosleep(&pause, NULL);
	for (long i = 0; i < started; i++)
		outside += !inside(pids[i], argv[5]);
	printf("long %ld outside %ld\n", started, outside);
	for (long i = 0; i < started; i++)
		kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	return 0;
}
