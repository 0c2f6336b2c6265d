// Whether its process is in the right group at its end.
//
//   cc -O2 -static -o late late.c
//   late MICROSECONDS LINE     sleeps so long; exit status 0 if /proc/self/cgroup then holds the line, else 1
//
// Copied to a name that a daemon's rules put into that group, and executed by exec_storm, which counts those that failed.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static char groups[8192] = "\n";

	if (argc != 3)
		return 2;
	long life = atol(argv[1]);
	struct timespec time = { life / 1000000, life % 1000000 * 1000 };
	if (life)
		nanosleep(&time, NULL);
	int file = open("/proc/self/cgroup", O_RDONLY);
	ssize_t length = read(file, groups + 1, sizeof groups - 2);
	size_t size = strlen(argv[2]);
	char *found = groups;
	while ((found = strstr(found + 1, argv[2])) && !(found[-1] == '\n' && found[size] == '\n'))
		;
	return length > 0 && found ? 0 : 1;
}
