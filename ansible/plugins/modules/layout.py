#!/usr/bin/python
# Copyright: the Ringfence authors
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt) or Apache License 2.0 (see LICENSE), at your choice

from __future__ import annotations

DOCUMENTATION = r"""
module: layout
short_description: Divides a host as a layout says
version_added: 0.1.0
description:
  - Writes the files of a layout, plans them on this host, and applies the plan, all of it or nothing.
  - A layout that the host can't satisfy changes neither a group nor a file.
  - With O(confirm), the host undoes the change by itself unless a later task confirms it with O(state=confirmed). The files
    in O(directory) stay as they were until then, so that a boot or a reload of the daemon brings the old layout, too.
options:
  state:
    description:
      - V(applied) writes the files and applies the layout that they make together.
      - V(confirmed) confirms the change that waits for it, and installs its files. Without one it changes nothing.
      - V(absent) removes the files and takes back what they set.
    type: str
    choices: [applied, confirmed, absent]
    default: applied
  content:
    description:
      - The text of the file, in TOML.
    type: str
  src:
    description:
      - A file on the controller with that text, found like those of M(ansible.builtin.copy).
    type: path
  name:
    description:
      - The file is C(layout.d/NAME.toml). Without it, it is C(layout.toml).
    type: str
  layouts:
    description:
      - Several files at once, as texts by their names.
      - An empty text is a file that is to be gone.
    type: dict
  prune:
    description:
      - Removes every other file of the layout, so that it is what this task names and nothing else.
    type: bool
    default: false
  confirm:
    description:
      - How long the change waits to be confirmed, such as V(120s) or V(5m), before the host undoes it.
      - A change of files alone, which makes no step, waits for nothing.
    type: str
  directory:
    description:
      - The directory of the layout.
    type: path
    default: /etc/ringfence
  reload:
    description:
      - Whether the daemon reads the new files.
      - V(auto) does so where its socket is there.
    type: str
    choices: [auto, always, never]
    default: auto
  socket:
    description:
      - The daemon's control socket.
    type: path
    default: /run/ringfence/ringfenced.sock
attributes:
  check_mode:
    support: full
    details: Plans on the host, and changes nothing.
  diff_mode:
    support: full
    details: Returns the plan and the files before and after.
  platform:
    support: full
    platforms: linux
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
  - ringfence.host.program
seealso:
  - module: ringfence.host.layout_info
  - module: ringfence.host.undo
"""

EXAMPLES = r"""
- name: Give the database half of the memory
  ringfence.host.layout:
    name: 10-db
    content: |
      [groups.db]
      memory.max = "50%"

- name: Apply a file of the controller, and nothing beside it
  ringfence.host.layout:
    src: layouts/db.toml
    prune: true

- name: Apply it for two minutes
  ringfence.host.layout:
    layouts: "{{ layouts_of_all | combine(layouts_of_this_host) }}"
    confirm: 120s

- name: Does the database answer?
  ansible.builtin.command: pg_isready
  changed_when: false

- name: Keep it
  ringfence.host.layout:
    state: confirmed

- name: Take one file of the layout back
  ringfence.host.layout:
    name: 10-db
    state: absent
"""

RETURN = r"""
steps:
  description: What is done, or with C(--check) would be, in its order, as C(ringfence plan --json) has it.
  returned: always
  type: list
  elements: dict
files:
  description: The files that changed, by their paths. Those of a change that waits are not installed yet.
  returned: always
  type: list
  elements: str
generation:
  description: The number of the change in the history, if there was anything to do.
  returned: when something was applied or confirmed
  type: int
  sample: 7
confirm_within:
  description: After this many seconds the host undoes the change by itself.
  returned: when the change waits to be confirmed
  type: int
  sample: 120
differences:
  description: Where the kernel has something else than was written, such as a rounded value.
  returned: when something was applied
  type: list
  elements: dict
explanation:
  description: Why the program refused, line by line, with the place in the layout and a hint.
  returned: failure
  type: list
  elements: str
  sample:
    - "error: the machine has 8 CPUs, but the layout needs 999 CPUs for 'db' to share: 991 too many"
    - " --> /etc/ringfence/layout.toml:2:8"
    - "hint: use 991 fewer in all, for example 8 CPUs in 'db'"
version:
  description: The version of the program.
  returned: success
  type: str
  sample: 0.1.0
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.ringfence.host.plugins.module_utils import layout_files
from ansible_collections.ringfence.host.plugins.module_utils.plan_text import before_after
from ansible_collections.ringfence.host.plugins.module_utils.program import (
    ARGUMENTS, ATTENTION, DONE, Program, seconds)

STATE = '/var/lib/ringfence'


def main():
    module = AnsibleModule(
        argument_spec=dict(
            state=dict(type='str', choices=['applied', 'confirmed', 'absent'], default='applied'),
            content=dict(type='str'),
            src=dict(type='path'),
            name=dict(type='str'),
            layouts=dict(type='dict'),
            prune=dict(type='bool', default=False),
            confirm=dict(type='str'),
            directory=dict(type='path', default='/etc/ringfence'),
            reload=dict(type='str', choices=['auto', 'always', 'never'], default='auto'),
            socket=dict(type='path', default='/run/ringfence/ringfenced.sock'),
            **ARGUMENTS),
        mutually_exclusive=[('content', 'src', 'layouts'), ('name', 'layouts')],
        required_if=[('state', 'applied', ('content', 'src', 'layouts'), True)],
        supports_check_mode=True)
    seconds(module, 'confirm', module.params['confirm'])
    named = files_of_task(module)
    task = Task(module, Program(module, may_come=True))
    try:
        if module.params['state'] == 'confirmed':
            task.confirm()
        else:
            task.apply(named)
    except OSError as error:
        hint = '' if os.geteuid() == 0 else '. Changing a host needs root: become: true'
        module.fail_json(msg='%s%s' % (error, hint))


def files_of_task(module):
    """The text of each file that the task names; None for one that is to be gone."""
    params = module.params
    if params['state'] == 'confirmed':
        return {}
    if params['src'] is not None:
        module.fail_json(msg="src is read by the controller: call the module by its name, ringfence.host.layout")
    texts = {params['name'] or '': params['content']} if params['layouts'] is None else params['layouts']
    gone = params['state'] == 'absent'
    for name, text in texts.items():
        if name and not layout_files.NAME.match(name):
            module.fail_json(msg="'%s' is no name of a file in layout.d: letters, digits and ._@- only" % name)
        if not gone and not isinstance(text, str):
            module.fail_json(msg="layouts: '%s' is to be a text in TOML, and is %s" % (name, type(text).__name__))
    return {layout_files.file_of(name): None if gone or text == '' and params['layouts'] is not None else text
            for name, text in texts.items()}


class Task:
    """One run of the module."""

    def __init__(self, module, program):
        self.module = module
        self.program = program
        self.directory = module.params['directory']
        self.staged = os.path.join(program.state or os.environ.get('RINGFENCE_STATE', STATE), 'staged-layout')
        # the generation that the staged files made: the files of one that was undone stay until the next
        self.staged_for = self.staged + '.generation'

    def apply(self, named):
        """Plans the files that the task names together with those that stay, and applies the plan."""
        module, program = self.module, self.program
        before = layout_files.read(self.directory)
        texts = layout_files.after(before, named, module.params['prune'])
        planned = self.planned(before, texts)
        steps = planned.data['steps']
        files = layout_files.differences(before, texts, self.directory)
        result = dict(
            changed=bool(steps or files), steps=steps, version=program.version,
            files=[one['after_header'] for one in files])
        if module._diff:
            text_before, text_after = before_after(steps)
            plan = dict(before_header='plan', after_header='plan', before=text_before, after=text_after)
            result['diff'] = ([plan] if steps else []) + files
        if module.check_mode or not result['changed']:
            program.warnings(planned)
            module.exit_json(**result)
        if module.params['confirm'] and steps:
            self.wait_for_confirmation(texts, result)
        else:
            self.apply_at_once(before, texts, result)
        module.exit_json(**result)

    def planned(self, before, texts):
        """The plan of these files; those that are there are planned where they are, as changes by schedule count there."""
        if texts and texts == before:
            return self.program.answer('plan', self.directory)
        return self.program.answer('plan', self.stage(texts, os.path.join(self.module.tmpdir, 'layout')))

    def stage(self, texts, directory):
        self.program.shown.append((directory, self.directory))
        layout_files.stage(texts, directory)
        return directory

    def wait_for_confirmation(self, texts, result):
        """Applies files that are beside the layout's directory until they are confirmed."""
        waiting = self.program.answer('status', accept=(DONE, ATTENTION)).data.get('pending')
        if not waiting:
            self.forget_staged()
        else:
            # the program refuses to build upon it, and names it
            self.program.answer('apply', '--confirm', self.module.params['confirm'], self.directory)
        self.stage(texts, self.staged)
        words = ['--confirm', self.module.params['confirm']] + ([] if texts else ['--yes'])
        answer = self.program.run('apply', *(words + [self.staged]))
        if answer.error or answer.status not in (DONE, ATTENTION):
            layout_files.remove(self.staged)
            self.program.fail(answer)
        self.report(answer, result)
        with open(self.staged_for, 'w', encoding='ascii') as file:
            file.write('%d\n' % result['generation'])
        result['confirm_within'] = answer.data.get('undone_unless_confirmed_within_sec')

    def apply_at_once(self, before, texts, result):
        """Installs the files, and puts the old ones back where the program refuses them."""
        layout_files.install(before, texts, self.directory)
        answer = self.apply_installed(texts)
        if answer.error or answer.status not in (DONE, ATTENTION):
            layout_files.install(texts, before, self.directory)
            self.program.fail(answer)
        self.report(answer, result)
        self.reload(texts)

    def apply_installed(self, texts):
        if texts:
            return self.program.run('apply', self.directory)
        empty = os.path.join(self.module.tmpdir, 'empty')
        return self.program.run('apply', '--yes', self.stage({}, empty))

    def report(self, answer, result):
        self.program.warnings(answer)
        result.update(generation=answer.data['generation'], differences=answer.data['differences'])
        if answer.status == ATTENTION:
            left = answer.data['left'] + [one['message'] for one in answer.data.get('outside') or []]
            self.module.warn('the layout does not hold for everything: ' + '; '.join(left))

    def confirm(self):
        """Confirms what waits, then installs the files that it was made of.

        In this order a run that is killed in between leaves a confirmed change with the old files; the next run installs
        the new ones. The other order would leave files that a boot applies though nobody confirmed them.
        """
        module, program = self.module, self.program
        pending = program.answer('status', accept=(DONE, ATTENTION)).data.get('pending')
        generation = pending['generation'] if pending else self.not_installed()
        result = dict(changed=generation is not None, steps=[], files=[], version=program.version)
        if generation is None:
            module.exit_json(**result)
        result['generation'] = generation
        if pending and not self.is_of_ours(generation):
            self.confirm_of_somebody_else(generation, result)
        before, texts = layout_files.read(self.directory), layout_files.read(self.staged)
        if texts == {layout_files.MAIN: ''}:
            texts = {}
        files = layout_files.differences(before, texts, self.directory)
        result['files'] = [one['after_header'] for one in files]
        if module._diff:
            result['diff'] = files
        if not module.check_mode:
            if pending:
                program.answer('confirm', generation)
            layout_files.install(before, texts, self.directory)
            # the history names the files where they are now
            answer = self.apply_installed(texts)
            if answer.error or answer.status not in (DONE, ATTENTION):
                program.fail(answer, 'generation %d is confirmed and its files are installed, but: ' % generation)
            self.forget_staged()
            self.reload(texts)
        module.exit_json(**result)

    def is_of_ours(self, generation):
        """Was the change made of the files that are staged? Those of one that was undone may be there still."""
        rows = self.program.answer('history', generation).data
        what = rows[0].get('head', {}).get('what') if rows else None
        return what == 'layout ' + self.staged and os.path.isdir(self.staged)

    def not_installed(self):
        """The generation in effect whose files an earlier run confirmed and did not install."""
        try:
            with open(self.staged_for, encoding='ascii') as file:
                staged = int(file.read())
        except (FileNotFoundError, ValueError):
            return None
        rows = [row['head']['generation'] for row in self.program.answer('history').data if row.get('in_effect')]
        return staged if rows and rows[-1] == staged and os.path.isdir(self.staged) else None

    def forget_staged(self):
        layout_files.remove(self.staged)
        if os.path.exists(self.staged_for):
            os.unlink(self.staged_for)

    def confirm_of_somebody_else(self, generation, result):
        """A change that was applied by hand has no files of ours."""
        if not self.module.check_mode:
            self.program.answer('confirm', generation)
        self.module.exit_json(**result)

    def reload(self, texts):
        """Has the daemon read the files."""
        wanted, socket = self.module.params['reload'], self.module.params['socket']
        if wanted == 'never' or wanted == 'auto' and not (texts and os.path.exists(socket)):
            return
        answer = self.program.run('reload', '--socket', socket)
        if answer.error or answer.status != DONE:
            self.program.fail(answer, 'the layout is applied and its files are installed, but the daemon does not read them: ')


if __name__ == '__main__':
    main()
