// Whether its process is in the right group when main() starts.
//
//   cc -O2 -static -o in_group in_group.c
//   in_group LINE...     exit status 0 if /proc/self/cgroup holds each line (e.g. 3:pids:/db), else 1
//
// Copied to a path of its own and held by a gate, then executed by exec_storm, which counts those that failed.
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static char groups[8192] = "\n";
	int file = open("/proc/self/cgroup", O_RDONLY);
	ssize_t length = read(file, groups + 1, sizeof groups - 2);

	for (int i = 1; i < argc; i++) {
		size_t size = strlen(argv[i]);
		char *found = groups;
		while ((found = strstr(found + 1, argv[i])) && !(found[-1] == '\n' && found[size] == '\n'))
			;
		if (!found)
			return 1;
	}
	return length > 0 && argc > 1 ? 0 : 1;
}
