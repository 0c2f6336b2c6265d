# Copyright: the Ringfence authors
# Apache License 2.0 (see LICENSE)

"""The files that a layout consists of: `layout.toml` and `layout.d/NAME.toml` of a directory."""

from __future__ import annotations

import os
import re
import shutil
import tempfile

MAIN = 'layout.toml'
MORE = 'layout.d'
NAME = re.compile(r'^[A-Za-z0-9][A-Za-z0-9._@-]*$')


def file_of(name):
    """`layout.d/10-db.toml` of the name `10-db`; without a name, `layout.toml`."""
    return MAIN if not name else os.path.join(MORE, name + '.toml')


def read(directory):
    """The text of each file, by its path below the directory."""
    found = [MAIN] if os.path.exists(os.path.join(directory, MAIN)) else []
    more = os.path.join(directory, MORE)
    if os.path.isdir(more):
        found += [os.path.join(MORE, name) for name in sorted(os.listdir(more)) if name.endswith('.toml') and not name.startswith('.')]
    texts = {}
    for path in found:
        with open(os.path.join(directory, path), encoding='utf-8', errors='surrogateescape') as file:
            texts[path] = file.read()
    return texts


def after(texts, named, prune):
    """The files as a task asks for them: `named` has a text for each file, or None for one that is to be gone."""
    files = {} if prune else dict(texts)
    for path, text in named.items():
        files.pop(path, None)
        if text is not None:
            files[path] = text
    return files


def stage(texts, directory):
    """Writes a layout into an empty directory of its own that only its owner can change."""
    os.makedirs(os.path.join(directory, MORE), mode=0o700)
    # a layout without a file can't be read; one without a group can
    for path, text in (texts or {MAIN: ''}).items():
        put(directory, path, text, 0o600)


def put(directory, path, text, mode):
    """Replaces a file, wholly or not at all."""
    target = os.path.join(directory, path)
    os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix='.ringfence-', dir=os.path.dirname(target))
    try:
        with os.fdopen(descriptor, 'w', encoding='utf-8', errors='surrogateescape') as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.rename(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def install(before, texts, directory):
    """Makes the directory's layout that of `texts`; `before` is what it was."""
    for path, text in texts.items():
        if before.get(path) != text:
            put(directory, path, text, 0o644)
    for path in before:
        if path not in texts:
            os.unlink(os.path.join(directory, path))


def remove(directory):
    """Removes what was staged."""
    shutil.rmtree(directory, ignore_errors=True)


def differences(before, texts, directory):
    """A diff of each file, as --diff shows them."""
    return [
        dict(before_header=os.path.join(directory, path), after_header=os.path.join(directory, path),
             before=before.get(path, ''), after=texts.get(path, ''))
        for path in sorted(set(before) | set(texts)) if before.get(path) != texts.get(path)]
