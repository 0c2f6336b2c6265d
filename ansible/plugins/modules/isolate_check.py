#!/usr/bin/python
# Copyright: the Ringfence authors
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt) or Apache License 2.0 (see LICENSE), at your choice

from __future__ import annotations

DOCUMENTATION = r"""
module: isolate_check
short_description: Fails where a group's CPUs are interrupted more often than a budget allows
version_added: 0.1.0
description:
  - Counts what interrupts the CPUs of a group with C(ringfence isolate check), and names the most frequent causes.
options:
  group:
    description:
      - The group, which has CPUs of its own, or CPUs such as V(2-3).
    type: str
    required: true
  for:
    description:
      - How long to count, such as V(10s).
    type: str
    default: 10s
  budget:
    description:
      - The most interruptions per second that a CPU may have.
    type: float
    required: true
  probe:
    description:
      - Whether a probe runs on the CPUs at the same time and looks for gaps in its own running.
      - It takes the CPUs for most of the time, from tasks that are not real-time ones, so that it is for CPUs whose work has not begun.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    details: It changes nothing, and counts in check mode, too.
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
- name: Nothing interrupts the trading thread more than 20 times a second
  ringfence.host.isolate_check:
    group: rt
    for: 30s
    budget: 20
"""

RETURN = r"""
isolation:
  description: What was counted, as C(ringfence isolate check --json) has it.
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

from ansible_collections.ringfence.host.plugins.module_utils.program import ARGUMENTS, DONE, Program

# causes of a CPU that the message names
NAMED = 3


def main():
    module = AnsibleModule(
        argument_spec=dict(
            group=dict(type='str', required=True),
            budget=dict(type='float', required=True),
            probe=dict(type='bool', default=False),
            **dict(ARGUMENTS, **{'for': dict(type='str', default='10s')})),
        supports_check_mode=True)
    params = module.params
    if not 0 <= params['budget'] < float('inf'):
        module.fail_json(msg='budget: %s is no number of interruptions per second' % params['budget'])
    program = Program(module)
    words = ['--for', params['for'], '--budget', '%g' % params['budget']] + ([] if params['probe'] else ['--no-probe'])
    answer = program.run('isolate check', *(words + ['--', params['group']]))
    if answer.error or answer.data is None:
        program.fail(answer)
    if answer.status != DONE:
        module.fail_json(
            msg="'%s' is above its budget of %g interruptions per second: %s" % (
                params['group'], params['budget'], '; '.join(above(answer.data, params['budget'])) or 'see isolation'),
            explanation=answer.explanation.rstrip('\n').split('\n'),
            isolation=answer.data)
    module.exit_json(changed=False, isolation=answer.data, version=program.version)


def above(report, budget):
    """The CPUs above the budget, with what interrupts them most often."""
    for cpu in report.get('cpus', []):
        if cpu['per_sec'] > budget:
            causes = ', '.join('%s %s' % (cause.get('kind', ''), cause.get('name', '')) for cause in cpu['causes'][:NAMED])
            yield 'CPU %d has %.1f (%s)' % (cpu['cpu'], cpu['per_sec'], causes)


if __name__ == '__main__':
    main()
