# Copyright: the Ringfence authors
# Apache License 2.0 (see LICENSE)

"""Runs the program ringfence, and turns its failures into those of a module."""

from __future__ import annotations

import json
import re

# the first version whose plan, apply, status and history have the JSON that the modules read
OLDEST = (0, 1, 0)

DONE = 0
USAGE = 2
ATTENTION = 3

ARGUMENTS = dict(
    executable=dict(type='str', default='ringfence'),
    state_directory=dict(type='path'),
)

# the commands that have --state
WITH_HISTORY = ('plan', 'apply', 'confirm', 'undo', 'status', 'history', 'isolate')

UNKNOWN = re.compile(r"unknown command|unrecognized subcommand|unexpected argument")


class Answer:
    """What a command printed, and how it ended."""

    def __init__(self, words, status, data, explanation):
        self.words = words
        self.status = status
        self.data = data
        self.explanation = explanation

    @property
    def error(self):
        """The object that --json prints in place of an answer, if it did."""
        return self.data.get('error') if isinstance(self.data, dict) else None


class Program:
    """The program on this host; every failure ends the module with the program's own words."""

    def __init__(self, module, may_come=False):
        """`may_come`: in check mode, an earlier task would have installed the program."""
        self.module = module
        self.state = module.params.get('state_directory')
        # where a layout was staged, and what its paths are shown as
        self.shown = []
        name = module.params['executable']
        self.path = module.get_bin_path(name)
        if self.path is None and module.check_mode and may_come:
            module.warn('%s is not installed yet: there is a plan once it is' % name)
            module.exit_json(changed=True)
        if self.path is None:
            module.fail_json(
                msg="there is no program %s on this host. Install the package ringfence first, "
                "as the role ringfence.host.host does, or name it with 'executable'" % name)
        self.version = self._version()

    def _version(self):
        status, out, err = self.module.run_command([self.path, '--version'])
        found = re.match(r'ringfence (\d+)\.(\d+)\.(\d+)', out)
        if status != DONE or found is None:
            self.module.fail_json(msg="%s is not ringfence: --version says '%s'" % (self.path, (out or err).strip()))
        version = tuple(int(number) for number in found.groups())
        if version < OLDEST:
            self._too_old('%d.%d.%d' % version, 'the modules need %d.%d.%d' % OLDEST)
        return '%d.%d.%d' % version

    def _too_old(self, version, why):
        self.module.fail_json(
            msg="ringfence %s on this host is too old: %s. Upgrade its package, then run this again" % (version, why),
            version=version)

    def run(self, command, *words):
        """Runs `ringfence COMMAND --json WORDS`. Ends the module only where the program does not know the command."""
        call = [self.path] + command.split() + ['--json']
        if self.state and command.split()[0] in WITH_HISTORY:
            call += ['--state', self.state]
        call += [str(word) for word in words]
        status, out, err = self.module.run_command(call, environ_update=dict(NO_COLOR='1'))
        if status == USAGE and UNKNOWN.search(err):
            self._too_old(self.version, "it does not know `ringfence %s`: %s" % (' '.join(call[1:]), err.strip().split('\n', 1)[0]))
        try:
            data = json.loads(out) if out.strip() else None
        except ValueError:
            self.module.fail_json(msg="`%s` printed no JSON: %s" % (' '.join(call), out[:200]), status=status, explanation=self.as_shown(err))
        return Answer(call, status, data, err)

    def answer(self, command, *words, **options):
        """The same, where a status that is not among `accept` ends the module with the program's explanation."""
        accept = options.get('accept', (DONE,))
        answer = self.run(command, *words)
        if answer.status not in accept or answer.error:
            self.fail(answer)
        return answer

    def fail(self, answer, before='', **more):
        """Ends the module with what the program said."""
        error = answer.error or {}
        message = error.get('message') or last_line(answer.explanation) or 'it ended with status %d' % answer.status
        causes = [one['message'] for one in (answer.data or {}).get('diagnostics', []) if one.get('severity') == 'error']
        if causes:
            message += ': ' + '; '.join(causes)
        if error.get('hint'):
            message += '. Hint: ' + error['hint']
        self.module.fail_json(
            msg=self.as_shown(before + message),
            explanation=self.as_shown(answer.explanation).rstrip('\n').split('\n'),
            command=self.as_shown(' '.join(answer.words)),
            status=answer.status,
            **more)

    def as_shown(self, text):
        """A text with the paths that people know, in place of those of staged files."""
        for staged, path in self.shown:
            text = text.replace(staged, path)
        return text

    def warnings(self, answer):
        """Passes on what the program warned of."""
        paragraph = []
        for line in self.as_shown(answer.explanation).split('\n') + ['warning: ']:
            if line.startswith(('warning: ', 'error: ', 'ringfence: ')):
                if paragraph:
                    self.module.warn(' '.join(paragraph))
                paragraph = [line[len('warning: '):]] if line.startswith('warning: ') else []
            elif paragraph and line.startswith('hint: '):
                paragraph.append('(%s)' % line)


def last_line(text):
    """The last line that says something."""
    lines = [line for line in text.strip().split('\n') if line]
    return lines[-1] if lines else ''


def seconds(module, name, text):
    """A time such as 120, 120s or 5m, as the program takes it; ends the module where it is none."""
    if text is None or re.match(r'^[1-9][0-9]*(s|m|h)?$', text):
        return text
    module.fail_json(msg="%s: '%s' is no time; such as 120, 120s or 5m" % (name, text))
