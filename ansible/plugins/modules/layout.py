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
      - V(confirmed) confirms the change that waits for it, and installs its files. It fails where the host undid that change
        already, as its time was over, and changes nothing where there was none.
      - V(absent) removes the files and takes back what they set. Without O(name) and O(layouts), the file is C(layout.toml).
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
      - Removes every other file of the layout, C(layout.toml) and C(layout.d/*.toml), also those that others wrote. The layout is
        then what this task names and nothing else. Files with other names stay.
    type: bool
    default: false
  confirm:
    description:
      - How long the change waits to be confirmed, such as V(120s) or V(5m), before the host undoes it.
      - A change of files alone, which makes no step, waits for nothing.
      - It counts from the end of this task, and has to be longer than all tasks until the confirmation take.
    type: str
  generation:
    description:
      - With O(state=confirmed), the number of the change, as the task that applied it returned it. The task fails where another
        one waits, or this one is no longer in effect.
      - Without it, the change that waits is confirmed, also one that was applied by hand.
    type: int
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
  register: applied

- name: Does the database answer?
  ansible.builtin.command: pg_isready
  changed_when: false

- name: Keep it
  ringfence.host.layout:
    state: confirmed
    generation: "{{ applied.generation if applied.confirm_within is defined else omit }}"

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
    - "error: the machine has 8 CPUs, but 'db' needs 999 CPUs: 991 too many"
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
from ansible_collections.ringfence.host.plugins.module_utils.staging import Busy, Staging, remove


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
            generation=dict(type='int'),
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
    except (layout_files.Unreadable, Busy) as error:
        module.fail_json(msg=str(error))
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
        if not isinstance(name, str) or not layout_files.NAME.fullmatch(name) and (name or params['layouts'] is not None):
            module.fail_json(msg="'%s' is no name of a file in layout.d: a letter or digit, then letters, digits and ._@- only" % name)
        if not gone and not isinstance(text, str):
            kind = 'empty' if text is None else type(text).__name__
            module.fail_json(msg="layouts: '%s' is to be a text in TOML, and is %s" % (name, kind))
    named = {layout_files.file_of(name): None if gone or text == '' and params['layouts'] is not None else text
             for name, text in texts.items()}
    if params['prune'] and not gone and not any(named.values()):
        module.fail_json(msg="prune would remove the whole layout, as the task names no file with a text. To remove it: state: absent")
    return named


class Task:
    """One run of the module."""

    def __init__(self, module, program):
        self.module = module
        self.program = program
        self.directory = module.params['directory']
        self.staging = Staging(program.state)
        # directories of plans, of which there are two where another run changed the files meanwhile
        self.plans = 0

    def apply(self, named):
        """Plans the files that the task names together with those that stay, and applies the plan."""
        before, texts, result = self.look(named)
        if self.module.check_mode:
            self.module.exit_json(**result)
        if not result['changed'] and not self.staging.paths():
            self.module.exit_json(**result)
        with self.staging.locked():
            if layout_files.read(self.directory) != before:
                before, texts, result = self.look(named)
            if not result['changed']:
                self.forget_undone()
            elif self.module.params['confirm'] and result['steps']:
                self.wait_for_confirmation(texts, result)
            else:
                self.apply_at_once(before, texts, result)
        self.module.exit_json(**result)

    def look(self, named):
        """The files before and after, and what the module returns where nothing is done."""
        before = layout_files.read(self.directory)
        texts = layout_files.after(before, named, self.module.params['prune'])
        result = dict(changed=False, steps=[], version=self.program.version, files=[])
        if not before and not texts:
            # what is in effect is not made of files here
            return before, texts, result
        planned = self.planned(before, texts)
        steps = planned.data['steps']
        files = layout_files.differences(before, texts, self.directory)
        result.update(changed=bool(steps or files), steps=steps, files=[one['after_header'] for one in files])
        if self.module._diff:
            text_before, text_after = before_after(steps)
            plan = dict(before_header='plan', after_header='plan', before=text_before, after=text_after)
            result['diff'] = ([plan] if steps else []) + files
        if self.module.check_mode or not result['changed']:
            self.program.warnings(planned)
        return before, texts, result

    def planned(self, before, texts):
        """The plan of these files; those that are there are planned where they are, as changes by schedule count there."""
        if texts and texts == before:
            return self.program.answer('plan', self.directory)
        self.plans += 1
        path = os.path.join(self.module.tmpdir, 'layout%d' % self.plans)
        layout_files.stage(texts, path)
        return self.program.answer('plan', self.shown_as_installed(path))

    def shown_as_installed(self, path):
        self.program.shown.append((path, self.directory))
        return path

    def forget_undone(self):
        """Removes the files of a change that the host undid, or of a run that was killed."""
        if not self.program.answer('status', accept=(DONE, ATTENTION)).data.get('pending'):
            self.staging.clear()

    def wait_for_confirmation(self, texts, result):
        """Applies files that are beside the layout's directory until they are confirmed."""
        staged = self.shown_as_installed(self.staging.add(texts))
        words = ['--named', self.directory, '--confirm', self.module.params['confirm']] + ([] if texts else ['--yes'])
        answer = self.program.run('apply', *(words + [staged]))
        if answer.error or answer.status not in (DONE, ATTENTION):
            remove(staged)
            self.program.fail(answer)
        self.staging.clear(but=staged)
        self.report(answer, result)
        result['confirm_within'] = answer.data.get('undone_unless_confirmed_within_sec')

    def apply_at_once(self, before, texts, result):
        """Installs the files, and puts the old ones back where that or the program fails."""
        known = layout_files.attributes(self.directory, before)
        if texts:
            try:
                layout_files.install(before, texts, self.directory, known)
                answer = self.program.run('apply', self.directory)
            except OSError:
                self.put_back(before, known)
                raise
        else:
            # the files go last: they are what the next run sees if this one is killed
            answer = self.apply_nothing()
        if answer.error or answer.status not in (DONE, ATTENTION):
            self.put_back(before, known)
            self.program.fail(answer)
        if not texts:
            layout_files.install(before, texts, self.directory, known)
        self.staging.clear()
        self.report(answer, result)
        self.reload(texts)

    def put_back(self, before, known):
        layout_files.install(layout_files.read(self.directory), before, self.directory, known)

    def apply_nothing(self):
        empty = os.path.join(self.module.tmpdir, 'empty')
        layout_files.stage({}, empty)
        return self.program.run('apply', '--named', self.directory, '--yes', self.shown_as_installed(empty))

    def report(self, answer, result):
        self.program.warnings(answer)
        result.update(generation=answer.data['generation'], differences=answer.data['differences'])
        if answer.status == ATTENTION:
            left = answer.data['left'] + [one['message'] for one in answer.data.get('outside') or []]
            self.module.warn('the layout does not hold for everything: ' + '; '.join(left))

    def confirm(self):
        """Confirms what waits, then installs the files that it was made of."""
        if self.module.check_mode or not self.staging.paths():
            self.confirm_what_waits()
        with self.staging.locked():
            self.confirm_what_waits()

    def confirm_what_waits(self):
        """In this order a run that is killed in between leaves a confirmed change with the old files; the next run installs
        the new ones. The other order would leave files that a boot applies though nobody confirmed them.
        """
        module, program = self.module, self.program
        pending = program.answer('status', accept=(DONE, ATTENTION)).data.get('pending')
        history = program.answer('history').data
        row = row_of(history, pending['generation']) if pending else last_layout(history)
        staged = self.staging.of(row)
        if not module.check_mode:
            self.refuse_undone(history, pending, staged)
        result = dict(changed=bool(pending or staged), steps=[], files=[], version=program.version)
        if not result['changed']:
            module.exit_json(**result)
        generation = result['generation'] = row['head']['generation']
        before = texts = {}
        if staged:
            # a change that was applied by hand has no files of ours
            before, texts = layout_files.read(self.directory), self.staging.read(staged)
        files = layout_files.differences(before, texts, self.directory)
        result['files'] = [one['after_header'] for one in files]
        if module._diff:
            result['diff'] = files
        if not module.check_mode:
            if pending:
                program.answer('confirm', generation)
            if staged:
                layout_files.install(before, texts, self.directory, layout_files.attributes(self.directory, before))
                self.staging.clear()
                self.reload(texts)
        module.exit_json(**result)

    def refuse_undone(self, history, pending, staged):
        """Ends the module where the change to be confirmed is no longer in effect, or another one waits."""
        wanted = self.module.params['generation']
        if pending and wanted not in (None, pending['generation']):
            self.module.fail_json(msg='generation %d waits to be confirmed, and not generation %d, which this task is to confirm' % (
                pending['generation'], wanted))
        if pending and (staged or wanted):
            return
        gone = [row for row in history if not row.get('in_effect') and row.get('head') and (
            row['head']['generation'] == wanted or wanted is None and self.staging.of(row))]
        if gone:
            number = gone[-1]['head']['generation']
            undone = ['generation %d undid it (%s)' % (row['head']['generation'], row['head']['what']) for row in history
                      if row.get('head') and row['head']['generation'] > number and row['head'].get('kind') == 'undo']
            self.module.fail_json(
                msg="generation %d cannot be confirmed, as it is no longer in effect%s. Apply the layout again, with a longer "
                "'confirm' if the time was too short" % (number, ': ' + undone[0] if undone else ''))

    def reload(self, texts):
        """Has the daemon read the files."""
        wanted, socket = self.module.params['reload'], self.module.params['socket']
        if wanted == 'never' or wanted == 'auto' and not (texts and os.path.exists(socket)):
            return
        answer = self.program.run('reload', '--socket', socket)
        if answer.error or answer.status != DONE:
            self.program.fail(answer, 'the layout is applied and its files are installed, but the daemon does not read them: ')


def row_of(history, generation):
    """A change of the history, by its number."""
    return next((row for row in history if row.get('head') and row['head']['generation'] == generation), {})


def last_layout(history):
    """The last layout in effect."""
    rows = [row for row in history if row.get('in_effect') and row.get('head') and row['head']['what'].startswith('layout ')]
    return rows[-1] if rows else {}


if __name__ == '__main__':
    main()
