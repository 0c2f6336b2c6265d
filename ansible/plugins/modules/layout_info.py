#!/usr/bin/python
# Copyright: the Ringfence authors
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt) or Apache License 2.0 (see LICENSE), at your choice

from __future__ import annotations

DOCUMENTATION = r"""
module: layout_info
short_description: Shows what a layout has in effect on a host, and where it drifted
version_added: 0.1.0
description:
  - Compares what was applied with what the kernel has. Changes nothing.
options:
  groups:
    description:
      - Only these groups and those below them.
    type: list
    elements: str
    default: []
  last:
    description:
      - How many generations of the history are returned, the newest first.
    type: int
    default: 10
attributes:
  check_mode:
    support: full
  diff_mode:
    support: N/A
    details: It changes nothing.
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
- name: Compare the host with what was applied
  ringfence.host.layout_info:
  register: division

- name: Fail where somebody changed a value
  ansible.builtin.assert:
    that: not division.drifted
    fail_msg: "{{ division.drifts }}"
"""

RETURN = r"""
drifted:
  description: Whether some group is not as it was applied.
  returned: success
  type: bool
drifts:
  description: Where and how, a row each.
  returned: success
  type: list
  elements: dict
  contains:
    group:
      description: The group.
      type: str
    what:
      description: The kind of drift, and the file, directory or unit.
      type: str
    applied:
      description: What was applied.
      type: str
    now:
      description: What there is now.
      type: str
    generation:
      description: The change that applied it.
      type: int
    applied_at:
      description: When that was; the drift came after it.
      type: str
attention:
  description: What else needs attention, a sentence each, such as a layout that is not in effect.
  returned: success
  type: list
  elements: str
owners:
  description: Owners and modes that were applied, by group.
  returned: success
  type: dict
groups:
  description: Each group with its settings, processes and use, as C(ringfence status --json) has it.
  returned: success
  type: list
  elements: dict
pending:
  description: The change that waits to be confirmed.
  returned: success
  type: dict
history:
  description: The last generations, the newest first, as C(ringfence history --json) has them.
  returned: success
  type: list
  elements: dict
version:
  description: The version of the program.
  returned: success
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.ringfence.host.plugins.module_utils.program import ARGUMENTS, ATTENTION, DONE, Program
from ansible_collections.ringfence.host.plugins.module_utils.status import attention, drifts, owners


def main():
    module = AnsibleModule(
        argument_spec=dict(
            groups=dict(type='list', elements='str', default=[]),
            last=dict(type='int', default=10),
            **ARGUMENTS),
        supports_check_mode=True)
    if module.params['last'] < 0:
        module.fail_json(msg='last: %d is no number of generations' % module.params['last'])
    program = Program(module)
    status = program.answer('status', '--', *module.params['groups'], accept=(DONE, ATTENTION)).data
    history = program.answer('history').data
    last = module.params['last']
    module.exit_json(
        changed=False,
        drifted=status['drift'],
        drifts=drifts(status, history),
        attention=attention(status),
        owners=owners(status),
        groups=status['groups'],
        pending=status['pending'],
        history=history[::-1][:last],
        version=program.version)


if __name__ == '__main__':
    main()
