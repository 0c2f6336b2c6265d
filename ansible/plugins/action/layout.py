# Copyright: the Ringfence authors
# Apache License 2.0 (see LICENSE)

"""Reads a layout's `src` on the controller, so that the module has its text."""

from __future__ import annotations

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """Of the module ringfence.host.layout."""

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        args = dict(self._task.args)
        source = args.pop('src', None)
        if source is not None and not isinstance(source, str):
            return dict(result, failed=True, msg='src: %s is no path' % (source,))
        if source is not None:
            if args.get('content') is not None or args.get('layouts') is not None:
                return dict(result, failed=True, msg='parameters are mutually exclusive: content|src|layouts')
            try:
                path = self._loader.get_real_file(self._find_needle('files', source))
                with open(path, encoding='utf-8', newline='') as file:
                    args['content'] = file.read()
            except (AnsibleError, OSError, UnicodeDecodeError) as error:
                return dict(result, failed=True, msg='src: %s cannot be read: %s' % (source, error))
        result.update(self._execute_module(
            module_name='ringfence.host.layout', module_args=args, task_vars=task_vars, wrap_async=self._task.async_val))
        return result
