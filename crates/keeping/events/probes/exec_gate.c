// The least that can hold an exec, move the process and let it go on: what a gate is measured against.
//
//   cc -O2 -o exec_gate exec_gate.c
//   exec_gate FILE [TASKS...]     prints "ready", then answers until killed
//
// FILE: the one executable that is held. TASKS: files (tasks, cgroup.procs) that each process's ID is written to first.
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/fanotify.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static struct fanotify_event_metadata events[64];
	int tasks[16], count = 0;

	if (argc < 2 || argc - 2 > 16)
		errx(2, "usage: exec_gate FILE [TASKS...]");
	for (; count < argc - 2; count++)
		if ((tasks[count] = open(argv[count + 2], O_WRONLY | O_CLOEXEC)) < 0)
			err(1, "%s", argv[count + 2]);
	int gate = fanotify_init(FAN_CLASS_CONTENT | FAN_UNLIMITED_QUEUE | FAN_CLOEXEC, O_RDONLY | O_LARGEFILE | O_CLOEXEC);
	if (gate < 0)
		err(1, "fanotify_init");
	if (fanotify_mark(gate, FAN_MARK_ADD, FAN_OPEN_EXEC_PERM, AT_FDCWD, argv[1]) != 0)
		err(1, "%s", argv[1]);
	puts("ready");
	fflush(stdout);

	for (;;) {
		ssize_t length = read(gate, events, sizeof events);
		if (length < 0)
			err(1, "read");
		struct fanotify_event_metadata *event = events;
		for (; FAN_EVENT_OK(event, length); event = FAN_EVENT_NEXT(event, length)) {
			char pid[16];
			int size = snprintf(pid, sizeof pid, "%d", event->pid);
			for (int i = 0; i < count; i++)
				if (write(tasks[i], pid, size) != size)
					warn("move of %s to %s", pid, argv[i + 2]);
			struct fanotify_response answer = { .fd = event->fd, .response = FAN_ALLOW };
			if (write(gate, &answer, sizeof answer) < 0)
				warn("answer");
			close(event->fd);
		}
	}
}
