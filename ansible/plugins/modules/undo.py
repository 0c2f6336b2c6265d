#!/usr/bin/python
# Copyright: the Ringfence authors
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt) or Apache License 2.0 (see LICENSE), at your choice

from __future__ import annotations

DOCUMENTATION = r"""
module: undo
short_description: Takes changes of a host's division back
version_added: 0.1.0
description:
  - Undoes the last change, or goes back to the state after an earlier one.
  - The files of the layout stay as they are, and a boot or a reload of the daemon applies them again. To change both, apply
    the earlier files with M(ringfence.host.layout).
options:
  generation:
    description:
      - Back to the state after this generation; V(0) is the state before the first.
      - Without it, the last change in effect is undone, each time that the task runs.
    type: int
attributes:
  check_mode:
    support: full
    details: Names the generations that would be taken back.
  diff_mode:
    support: full
    details: Returns the generations that are in effect before and after.
  platform:
    support: full
    platforms: linux
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
  - ringfence.host.program
seealso:
  - module: ringfence.host.layout
"""

EXAMPLES = r"""
- name: Undo the last change
  ringfence.host.undo:

- name: Back to how the host was before the first
  ringfence.host.undo:
    generation: 0
"""

RETURN = r"""
undone:
  description: The generations that are no longer in effect.
  returned: success
  type: list
  elements: int
generation:
  description: The number of the undo in the history; none where the host did it already by itself.
  returned: when something was undone
  type: int
left:
  description: What could not be taken back, with the reason; the next undo tries again.
  returned: when something was undone
  type: list
  elements: str
version:
  description: The version of the program.
  returned: success
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.ringfence.host.plugins.module_utils.program import ARGUMENTS, ATTENTION, DONE, Program


def main():
    module = AnsibleModule(
        argument_spec=dict(generation=dict(type='int'), **ARGUMENTS),
        supports_check_mode=True)
    to = module.params['generation']
    if to is not None and to < 0:
        module.fail_json(msg='generation: %d is no generation; 0 is the state before the first' % to)
    program = Program(module)
    history = program.answer('history').data
    in_effect = [row for row in history if row.get('in_effect') and row.get('head')]
    if to is None:
        undone = in_effect[-1:]
    else:
        undone = [row for row in in_effect if row['head']['generation'] > to]
    numbers = [row['head']['generation'] for row in undone]
    result = dict(changed=bool(undone), undone=numbers, version=program.version)
    if module._diff:
        stays = [row for row in in_effect if row not in undone]
        result['diff'] = dict(before_header='in effect', after_header='in effect', before=lines(in_effect), after=lines(stays))
    if undone and not module.check_mode:
        answer = program.answer('undo', *([] if to is None else [to]), accept=(DONE, ATTENTION))
        program.warnings(answer)
        result.update(generation=answer.data['generation'], left=answer.data['left'])
        for left in answer.data['left']:
            module.warn('not taken back: ' + left)
    module.exit_json(**result)


def lines(rows):
    """Generations, a line each."""
    return ''.join('%d  %s  %s\n' % (row['head']['generation'], row['head']['at'], row['head']['what']) for row in rows)


if __name__ == '__main__':
    main()
