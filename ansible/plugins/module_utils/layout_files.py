# Copyright: the Ringfence authors
# Apache License 2.0 (see LICENSE)

"""The files that a layout consists of: `layout.toml` and `layout.d/NAME.toml` of a directory."""

from __future__ import annotations

import os
import re
import stat
import tempfile

MAIN = 'layout.toml'
MORE = 'layout.d'
NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9._@-]*')
TEMPORARY = '.ringfence-'
# mode and owner of a file that was not there
NEW = (0o644, None, None)


class Unreadable(Exception):
    """A file of the layout that the program would refuse to read."""


def file_of(name):
    """`layout.d/10-db.toml` of the name `10-db`; without a name, `layout.toml`."""
    return MAIN if not name else os.path.join(MORE, name + '.toml')


def read(directory):
    """The text of each file, by its path below the directory."""
    more = os.path.join(directory, MORE)
    for path in (directory, more):
        refuse_link(path)
    found = [MAIN] if os.path.lexists(os.path.join(directory, MAIN)) else []
    if os.path.isdir(more):
        found += [os.path.join(MORE, name) for name in sorted(os.listdir(more)) if name.endswith('.toml') and not name.startswith('.')]
    return dict((path, text_of(os.path.join(directory, path))) for path in found)


def refuse_link(path):
    """Root reads no file through a link, as another user may own what it leads to; the program refuses it, too."""
    if os.geteuid() == 0 and os.path.islink(path):
        raise Unreadable('%s is a symbolic link, which root does not follow here. Put the file or directory itself there' % path)


def text_of(path):
    """A file's text, with its line ends as they are."""
    refuse_link(path)
    # opening a FIFO would wait for its writer
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, encoding='utf-8', errors='surrogateescape', newline='') as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable('%s is no regular file' % path)
        return file.read()


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
        put(directory, path, text, (0o600, None, None))


def attributes(directory, paths):
    """Mode and owner of each file that is there."""
    found = {}
    for path in paths:
        about = os.lstat(os.path.join(directory, path))
        # the program reads no file that others than its owner can change
        found[path] = (stat.S_IMODE(about.st_mode) & ~0o022, about.st_uid, about.st_gid)
    return found


def put(directory, path, text, about):
    """Replaces a file, wholly or not at all."""
    mode, user, group = about
    target = os.path.join(directory, path)
    # one call would give the upper of two new directories the mode of the process's mask
    for made in (directory, os.path.dirname(target)):
        os.makedirs(made, mode=0o755, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=TEMPORARY, dir=os.path.dirname(target))
    try:
        with os.fdopen(descriptor, 'w', encoding='utf-8', errors='surrogateescape', newline='') as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if user is not None and (user, group) != (os.geteuid(), os.getegid()):
            os.chown(temporary, user, group)
        os.chmod(temporary, mode)
        os.rename(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def install(before, texts, directory, known):
    """Makes the directory's layout that of `texts`; `before` is what it was, `known` the mode and owner of each file."""
    sweep(directory)
    for path, text in texts.items():
        if before.get(path) != text:
            put(directory, path, text, known.get(path, NEW))
    for path in before:
        if path not in texts:
            os.unlink(os.path.join(directory, path))


def sweep(directory):
    """Removes the temporary files of runs that were killed."""
    for where in (directory, os.path.join(directory, MORE)):
        if os.path.isdir(where):
            for name in os.listdir(where):
                if name.startswith(TEMPORARY):
                    os.unlink(os.path.join(where, name))


def differences(before, texts, directory):
    """A diff of each file, as --diff shows them."""
    return [
        dict(before_header=os.path.join(directory, path), after_header=os.path.join(directory, path),
             before=shown(before.get(path, '')), after=shown(texts.get(path, '')))
        for path in sorted(set(before) | set(texts)) if before.get(path) != texts.get(path)]


def shown(text):
    """A text without what is no UTF-8, which a module can't return."""
    return text.encode('utf-8', 'surrogateescape').decode('utf-8', 'replace')
