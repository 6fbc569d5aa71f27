"""Fetches what the suites are made of: Debian source packages, by apt with a state of its own, so that
the machine's configuration is neither needed (deb-src lines) nor changed. Everything goes to
build/conformance, nothing into the repository."""

import glob
import os
import shutil
import subprocess

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), '../..'))
BUILD = TOP + '/build/conformance'
KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'


class NotAvailable(Exception):
    """A suite cannot be run here; the text says why."""


def quietly(argv, what, **options):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors='replace', **options)
    if done.returncode != 0:
        last = (done.stdout.strip().splitlines() or ['no output'])[-1]
        raise NotAvailable(f'{what}: {last}')
    return done.stdout


def archives():
    """Site and release of each Debian archive this machine uses."""
    listed = quietly(['apt-get', 'indextargets', '--format', '$(ORIGIN) $(COMPONENT) $(SITE) $(RELEASE)',
                      'Created-By: Packages'], 'apt-get indextargets')
    found = sorted({tuple(line.split()[2:]) for line in listed.splitlines() if line.startswith('Debian main ')})
    if not found:
        raise NotAvailable('apt knows no Debian archive; run apt-get update as root')
    return found


def apt_environment():
    """An apt that knows source packages. Updated once per build folder."""
    state = BUILD + '/apt'
    if not os.path.exists(state + '/updated'):
        for folder in ('lists/partial', 'cache/archives/partial'):
            os.makedirs(f'{state}/{folder}', exist_ok=True)
        with open(state + '/sources.list', 'w') as file:
            for site, release in archives():
                for kind in ('deb', 'deb-src'):
                    file.write(f'{kind} [signed-by={KEYRING}] {site} {release} main\n')
        with open(state + '/apt.conf', 'w') as file:
            file.write(f'Dir::State::lists "{state}/lists";\nDir::Etc::sourcelist "{state}/sources.list";\n'
                       f'Dir::Etc::sourceparts "-";\nDir::Cache "{state}/cache";\n'
                       'APT::Sandbox::User "root";\nAcquire::Languages "none";\n')
    environment = {**os.environ, 'APT_CONFIG': state + '/apt.conf'}
    if not os.path.exists(state + '/updated'):
        quietly(['apt-get', '-q', 'update'], 'apt-get update', env=environment)
        open(state + '/updated', 'w').close()
    return environment


def download(package, folder):
    """The newest version there is; mirrors know of security updates before they have them."""
    releases = sorted({release for _, release in archives()})
    for wanted in (package, *[f'{package}/{release}' for release in releases]):
        try:
            quietly(['apt-get', '-q', 'source', '--download-only', '--only-source', wanted],
                    f'apt-get source {wanted}', cwd=folder, env=apt_environment())
            return
        except NotAvailable as why:
            last = why
    raise last


def source(package, *members):
    """The folder of an unpacked Debian source package; of large ones only `members`, patterns below
    the top folder. Patches of Debian are not applied."""
    folder = f'{BUILD}/src/{package}'
    if os.path.exists(folder + '/complete'):
        return folder
    downloads = f'{BUILD}/download/{package}'
    os.makedirs(downloads, exist_ok=True)
    download(package, downloads)
    archive = [name for name in glob.glob(downloads + '/*.orig.tar.*') if not name.endswith('.asc')]
    if len(archive) != 1:
        raise NotAvailable(f'{package}: expected one archive, found {archive}')
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    quietly(['tar', '-x', '-f', archive[0], '-C', folder, '--strip-components=1', '--wildcards',
             *[f'*/{member}' for member in members]], f'unpack {package}')
    open(folder + '/complete', 'w').close()
    return folder


def package(name):
    """The folder of an unpacked binary package that is not installed."""
    folder = f'{BUILD}/package/{name}'
    if not os.path.exists(folder + '/complete'):
        os.makedirs(folder, exist_ok=True)
        quietly(['apt-get', '-q', 'download', name], f'apt-get download {name}', cwd=folder, env=apt_environment())
        quietly(['dpkg', '-x', *glob.glob(folder + '/*.deb'), folder], f'unpack {name}')
        open(folder + '/complete', 'w').close()
    return folder


def require(*programs):
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        raise NotAvailable('not installed: ' + ' '.join(missing))
