#!/usr/bin/python
# Copyright: the Ringfence authors
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt) or Apache License 2.0 (see LICENSE), at your choice

from __future__ import annotations

DOCUMENTATION = r"""
module: isolate_check
short_description: Fails where a group's CPUs are disturbed more than a budget allows
version_added: 0.1.0
description:
  - Watches the CPUs of a group for a while with C(ringfence isolate check), which changes nothing.
  - Fails with what disturbed them where that is more than the budget.
options:
  group:
    description:
      - The group, which has CPUs of its own.
    type: str
    required: true
  for:
    description:
      - How long to watch, such as V(10s).
    type: str
    default: 10s
  budget:
    description:
      - The longest disturbance that is allowed, such as V(50us).
    type: str
    required: true
attributes:
  check_mode:
    support: full
    details: It changes nothing, and watches in check mode, too.
  diff_mode:
    support: N/A
    details: It changes nothing.
  platform:
    support: full
    platforms: linux
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
  - ringfence.host.program
"""

EXAMPLES = r"""
- name: Nothing stops the trading thread for longer than 50 us
  ringfence.host.isolate_check:
    group: rt
    for: 30s
    budget: 50us
"""

RETURN = r"""
isolation:
  description: What was seen, as C(ringfence isolate check --json) has it.
  returned: always
  type: dict
explanation:
  description: What the program said, line by line.
  returned: failure
  type: list
  elements: str
version:
  description: The version of the program.
  returned: success
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.ringfence.host.plugins.module_utils.program import ARGUMENTS, DONE, Program, last_line


def main():
    module = AnsibleModule(
        argument_spec=dict(
            group=dict(type='str', required=True),
            budget=dict(type='str', required=True),
            **dict(ARGUMENTS, **{'for': dict(type='str', default='10s')})),
        supports_check_mode=True)
    params = module.params
    program = Program(module)
    answer = program.run('isolate check', params['group'], '--for', params['for'], '--budget', params['budget'])
    if answer.error or answer.data is None:
        program.fail(answer)
    if answer.status != DONE:
        module.fail_json(
            msg="the CPUs of group '%s' are disturbed more than %s allows: %s" % (
                params['group'], params['budget'], last_line(answer.explanation) or 'see isolation'),
            explanation=answer.explanation.rstrip('\n').split('\n'),
            isolation=answer.data)
    module.exit_json(changed=False, isolation=answer.data, version=program.version)


if __name__ == '__main__':
    main()
