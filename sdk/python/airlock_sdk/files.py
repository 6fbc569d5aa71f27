"""Files of a context, as its programs see them."""

import base64
import urllib.parse


def _query(path, **fields):
    """`path` is str, bytes or os.PathLike; bytes are for names that are not UTF-8."""
    if hasattr(path, '__fspath__'):
        path = path.__fspath__()
    words = ['path=' + urllib.parse.quote(path, safe='/')]
    for name, value in fields.items():
        if value is not None:
            words.append(f'{name}={str(value).lower() if isinstance(value, bool) else value}')
    return '?' + '&'.join(words)


def _told(path):
    """A path in a JSON body."""
    if hasattr(path, '__fspath__'):
        path = path.__fspath__()
    return {'base64': base64.b64encode(path).decode()} if isinstance(path, bytes) else path


def _conditions(if_match, if_none_match=None):
    fields = {'If-Match': if_match, 'If-None-Match': if_none_match}
    return {name: value for name, value in fields.items() if value is not None}


class Files:
    """`context.files`. Relative paths begin at the context's working folder."""

    def __init__(self, http, base):
        self._http = http
        self._base = base + '/files'

    def read(self, path, *, offset=0, length=None, if_match=None):
        """The bytes of a file, or of a part of it."""
        if length == 0:
            return b''
        return b''.join(self.stream(path, offset=offset, length=length, if_match=if_match))

    def read_text(self, path, encoding='utf-8', **options):
        return self.read(path, **options).decode(encoding)

    def stream(self, path, *, offset=0, length=None, if_match=None):
        """The bytes as they come: for what is too large to hold. Raises UnreachableError if they are cut off."""
        headers = _conditions(if_match)
        if offset or length is not None:
            headers['Range'] = f'bytes={offset}-{"" if length is None else offset + length - 1}'
        yield from self._http.blocks('GET', self._base + _query(path), headers)

    def write(self, path, contents, *, mode=None, mkdirs=None, if_match=None, if_none_match=None):
        """Makes or replaces a file, whole or not at all. `contents`: str, bytes, a binary file, or an iterable of
        bytes, which are sent as they come. `mode` is octal, '0644'."""
        if isinstance(contents, str):
            contents = contents.encode()
        headers = {'Content-Type': 'application/octet-stream', **_conditions(if_match, if_none_match)}
        return self._http.json('PUT', self._base + _query(path, mode=mode, mkdirs=mkdirs), body=contents,
                               headers=headers)

    def list(self, path='.', *, recursive=None, limit=None):
        """{'items': [dict, …], 'isTruncated': bool}."""
        return self._http.json('GET', self._base + ':list' + _query(path, recursive=recursive, limit=limit))

    def stat(self, path, *, follow=None):
        """`follow`: what a symlink leads to."""
        return self._http.json('GET', self._base + ':stat' + _query(path, follow=follow))

    def mkdir(self, path, *, parents=False, mode=None):
        """`parents`: and those above it; one that is there will do."""
        self._http.json('POST', self._base + ':mkdir', {'path': _told(path), 'parents': parents, 'mode': mode})

    def move(self, source, target, *, overwrite=False, parents=False):
        self._http.json('POST', self._base + ':move', {'from': _told(source), 'to': _told(target),
                                                       'overwrite': overwrite, 'parents': parents})

    def remove(self, path, *, recursive=None, if_match=None):
        self._http.json('DELETE', self._base + _query(path, recursive=recursive), headers=_conditions(if_match))
