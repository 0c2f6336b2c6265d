"""The modules layout_info, undo and isolate_check, and what all do with a program that does not fit."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ringfence.host.plugins.modules import isolate_check, layout_info, undo


def answer(status=0, out='', err=''):
    return dict(status=status, out=out, err=err)


def test_info_of_a_host_as_applied(run):
    result = run(layout_info, {}, dict(status=['status-same'], history=['history']))
    assert not result['failed'] and not result['changed'] and not result['drifted']
    assert result['drifts'] == [] and result['attention'] == []
    assert 'rf-test-record/db' in [group['group'] for group in result['groups']]
    assert result['history'][0]['head']['generation'] == 2


def test_info_of_drift_names_value_and_time(run):
    result = run(layout_info, {}, dict(status=['status-drift'], history=['history']))
    assert result['drifted']
    row, = [row for row in result['drifts'] if 'pids.max' in row['what']]
    assert (row['group'], row['applied'], row['now']) == ('rf-test-record/db', '50', '20')
    assert row['applied_at'].endswith('Z')


def test_info_of_a_change_that_waits(run):
    result = run(layout_info, dict(last=1), dict(status=['status-pending'], history=['history-pending']))
    assert result['pending']['generation'] == 2 and len(result['history']) == 1


def test_info_of_a_host_without_history(run):
    result = run(layout_info, {}, dict(status=['status-nothing'], history=['history-nothing']))
    assert not result['failed'] and result['groups'] == [] and result['history'] == []


def test_undo_of_the_last(run):
    result = run(undo, {}, dict(history=['history'], undo=['undo']))
    assert result['changed'] and result['undone'] == [2]


def test_undo_of_all_in_check_mode_calls_nothing(run):
    result = run(undo, dict(generation=0), dict(history=['history']), check=True, diff=True)
    assert result['changed'] and result['undone'] == [1, 2]
    assert result['diff']['after'] == '' and result['diff']['before'].count('\n') == 2


def test_undo_to_where_the_host_is_changes_nothing(run):
    result = run(undo, dict(generation=2), dict(history=['history']))
    assert not result['changed'] and result['undone'] == []


def test_undo_of_nothing_changes_nothing(run):
    result = run(undo, {}, dict(history=['history-nothing']))
    assert not result['failed'] and not result['changed']


def test_a_generation_below_zero(run):
    assert 'is no generation' in run(undo, dict(generation=-1), {})['msg']


def test_isolation_within_the_budget(run):
    result = run(isolate_check, dict(group='rt', budget=20), dict(isolate=[answer(out='{"above_budget": false, "cpus": []}')]))
    assert not result['failed'] and result['isolation'] == dict(above_budget=False, cpus=[])
    assert result['calls'][-1] == ['isolate', 'check', '--json', '--for', '10s', '--budget', '20', '--no-probe', '--', 'rt']


def test_isolation_above_the_budget(run):
    report = dict(above_budget=True, cpus=[
        dict(cpu=2, per_sec=3.0, causes=[]), dict(cpu=3, per_sec=812.5, causes=[dict(kind='interrupt', name='LOC')])])
    result = run(isolate_check, dict(group='rt', budget=20), dict(isolate=[answer(3, json.dumps(report))]))
    assert result['failed'] and 'above its budget of 20 interruptions per second: CPU 3 has 812.5 (interrupt LOC)' in result['msg']
    assert 'CPU 2' not in result['msg'] and result['isolation']['above_budget']


def test_isolation_of_a_program_that_has_none(run):
    result = run(isolate_check, dict(group='rt', budget=20), dict(isolate=['unknown-command']))
    assert result['failed'] and 'is too old' in result['msg'] and 'isolate check' in result['msg']


@pytest.mark.parametrize('module, args', [(layout_info, {}), (undo, {}), (isolate_check, dict(group='rt', budget=20))])
def test_programs_that_do_not_fit(run, module, args):
    old = run(module, args, {'--version': [answer(out='ringfence 0.0.9\n')]})
    assert old['failed'] and 'ringfence 0.0.9 on this host is too old' in old['msg']
    other = run(module, args, {'--version': [answer(out='cowsay 3\n')]})
    assert other['failed'] and 'is not ringfence' in other['msg']
    none = run(module, dict(args, executable='none'), {})
    assert none['failed'] and 'Install the package ringfence first' in none['msg']


def test_an_answer_that_is_no_json(run):
    result = run(layout_info, {}, dict(status=[answer(out='drift')]))
    assert result['failed'] and 'printed no JSON' in result['msg']


@pytest.mark.parametrize('module, args, said', [
    (undo, dict(generation='x'), 'generation'),
    (layout_info, dict(last='x'), 'last'),
    (layout_info, dict(groups={'a': 1}), 'groups'),
    (isolate_check, dict(group='x'), 'budget'),
])
def test_wrong_types(run, module, args, said):
    result = run(module, args, {})
    assert result['failed'] and said in result['msg']


def test_names_that_begin_with_a_dash_are_no_options(run):
    result = run(layout_info, dict(groups=['-x']), dict(status=['status-nothing'], history=['history-nothing']))
    assert result['calls'][1] == ['status', '--json', '--', '-x']


def test_isolation_is_compared_with_the_history_that_is_named(run):
    result = run(isolate_check, dict(group='rt', budget=20, state_directory='/x'), dict(isolate=[answer(0, '{"cpus": []}')]))
    assert result['calls'][-1][:5] == ['isolate', 'check', '--json', '--state', '/x']
