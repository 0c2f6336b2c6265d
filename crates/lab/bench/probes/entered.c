// Which parts of a program a command enters, in the order of its first steps there.
//
//   cc -O2 -o entered entered.c
//   entered PROGRAM ARGUMENT…     writes an address for each 16 bytes of code entered, to file descriptor 3
//
// It steps through the program, instruction by instruction, until that ends or executes another one. The program has to be
// linked statically and at fixed addresses: what lies elsewhere (vDSO) is left out.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRANULE = 16, END = 1 << 28 };

int main(int argc, char **argv)
{
	static char entered[END / GRANULE];
	int status, executed = 0, passed = 0;

	if (argc < 2)
		return 2;
	pid_t child = fork();
	if (child == 0) {
		close(3);
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
			execv(argv[1], argv + 1);
		perror(argv[1]);
		_exit(127);
	}
	FILE *addresses = fdopen(3, "w");
	if (child < 0 || !addresses || waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status))
		return 1;
	ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
	while (WIFSTOPPED(status)) {
		struct user_regs_struct registers;

		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
			executed = 1;
		if (!executed && ptrace(PTRACE_GETREGS, child, NULL, &registers) == 0 && registers.rip < END
		    && !entered[registers.rip / GRANULE]) {
			entered[registers.rip / GRANULE] = 1;
			fprintf(addresses, "%llx\n", registers.rip);
		}
		passed = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		if (ptrace(executed ? PTRACE_CONT : PTRACE_SINGLESTEP, child, NULL, passed) < 0
		    || waitpid(child, &status, 0) < 0)
			break;
	}
	return fclose(addresses) ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
