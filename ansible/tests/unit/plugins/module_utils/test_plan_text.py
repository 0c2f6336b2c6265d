"""Plans as texts before and after."""

from __future__ import annotations

import json

from ansible_collections.ringfence.host.plugins.module_utils.plan_text import before_after


def steps(recorded, name):
    return json.loads(recorded(name)['out'])['steps']


def test_all_that_is_taken_back_is_before_only(recorded):
    before, after = before_after(steps(recorded, 'plan-empty'))
    assert 'rf-test-record/db' in before
    assert 'rf-test-record/db\n  group' not in after


def test_no_step_is_no_text(recorded):
    assert before_after(steps(recorded, 'plan-same')) == ('', '')


def step(action, **more):
    return dict(action=action, group='db', place=dict(path='db', hierarchy=0, version='v2'), why='so', **more)


def test_lines_by_device_are_all_shown():
    before, after = before_after([
        step('write', file='io.max', text='8:0 riops=10', before=''), step('write', file='io.max', text='8:16 riops=20', before='')])
    assert after == 'db\n  io.max  8:0 riops=10, 8:16 riops=20\n'


def test_a_value_that_is_written_twice_has_its_last():
    before, after = before_after([
        step('write', file='cpu.max', text='max 100000', before='5 100000'), step('write', file='cpu.max', text='7 100000', before='max 100000')])
    assert (before, after) == ('db\n  cpu.max  5 100000\n', 'db\n  cpu.max  7 100000\n')


def test_each_kind_of_step_has_words():
    kinds = [
        step('create-group'), step('enable-controllers', names=['cpu', 'memory']), step('disable-controllers', names=['io']),
        step('write-drop-in', unit='x.service', path='/etc/x.conf', text='[Service]\n', before=None),
        step('set-devices', setting='devices.allow', rule='c 1:3 rwm'), step('set-ownership', access=dict(tasks_uid=5, admin_uid=None)),
        step('move-tasks', tasks=[1, 2]), step('remove-group'), step('a-later-kind'),
        dict(action='mount', group='', why='the layout names it', path='/x', controllers=[], name='x')]
    before, after = before_after(kinds)
    for words in ('controllers', 'cpu, memory', '/etc/x.conf:1', 'c 1:3 rwm', 'tasks_uid 5', 'a-later-kind', 'mount'):
        assert words in after
    assert 'io' in before and 'is there' in before
