# Copyright: the Ringfence authors
# Apache License 2.0 (see LICENSE)

"""The steps of a plan as two texts, before and after, for --diff."""

from __future__ import annotations


def before_after(steps):
    """What a plan's steps find and what they leave, by group, in one order."""
    before, after = Groups(), Groups()
    for step in steps:
        RENDER.get(step['action'], other)(step, before, after)
    return before.text(), after.text()


class Groups:
    """Lines by group and thing; a thing that is written twice has its last value."""

    def __init__(self):
        self.groups = {}

    def put(self, step, thing, text):
        self.groups.setdefault(group_of(step), {})[thing] = text

    def add(self, step, thing, text):
        lines = self.groups.setdefault(group_of(step), {})
        lines[thing] = '%s, %s' % (lines[thing], text) if thing in lines else text

    def text(self):
        lines = []
        for group in sorted(self.groups, key=lambda name: name.split('/')):
            lines.append(group or '/')
            things = self.groups[group]
            width = max(len(thing) for thing in things)
            lines.extend(('  %-*s  %s' % (width, thing, things[thing])).rstrip() for thing in sorted(things))
        return ''.join(line + '\n' for line in lines)


def group_of(step):
    """The group that a step is done in: that of its directory, which may be one above the layout's group."""
    place = step.get('place')
    return step['group'] if place is None else place['path']


def made(step, dummy_before, after):
    after.put(step, 'group', 'is there')


def removed(step, before, dummy_after):
    before.put(step, 'group', 'is there')


def written(step, before, after):
    name, text = step['file'], step['text'].strip()
    by_key = ':' in text.split(' ', 1)[0]
    if step.get('before') is not None and name not in before.groups.get(group_of(step), {}):
        before.put(step, name, step['before'].strip().replace('\n', ', '))
    (after.add if by_key else after.put)(step, name, text)


def enabled(step, dummy_before, after):
    after.add(step, 'controllers', ', '.join(step['names']))


def disabled(step, before, dummy_after):
    before.add(step, 'controllers', ', '.join(step['names']))


def drop_in(step, before, after):
    for groups, text in ((before, step.get('before')), (after, step.get('text'))):
        for number, line in enumerate((text or '').splitlines()):
            groups.put(step, '%s:%d' % (step['path'], number + 1), line)


def device(step, dummy_before, after):
    after.add(step, step['setting'], step['rule'])


def owners(step, dummy_before, after):
    access = step['access']
    after.put(step, 'owners', ', '.join('%s %s' % (name, access[name]) for name in sorted(access) if access[name] is not None))


def moved(step, before, after):
    count = len(step['tasks'])
    before.put(step, 'processes from elsewhere', '0')
    after.put(step, 'processes from elsewhere', str(count))


def other(step, dummy_before, after):
    after.add(step, step['action'], step['why'])


RENDER = {
    'create-group': made,
    'remove-group': removed,
    'write': written,
    'enable-controllers': enabled,
    'disable-controllers': disabled,
    'write-drop-in': drop_in,
    'set-devices': device,
    'set-ownership': owners,
    'move-tasks': moved,
}
