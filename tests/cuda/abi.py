#!/usr/bin/env python3
"""Compiles abi.cc against every set of real CUDA headers that is found: the toolkit's, those of PyPI's nvidia-cuda-runtime
packages below the folders named in WHYOOM_CUDA_HEADERS, and those of this interpreter. None found: skipped.

A row that is deliberately wrong must be refused, too: a comparison that cannot fail is none."""
import glob
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

SKIP = 77


def header_sets():
    roots = ['/usr/local/cuda*/include', '/opt/cuda*/include', '/usr/lib/cuda*/include']
    roots += [os.path.join(r, '**', 'include') for r in os.environ.get('WHYOOM_CUDA_HEADERS', '').split(':') if r]
    roots.append(os.path.join(sysconfig.get_paths()['purelib'], 'nvidia', '*', 'include'))
    seen = set()
    for pattern in roots:
        for include in glob.glob(pattern, recursive=True):
            real = os.path.realpath(include)
            if real in seen or not os.path.exists(os.path.join(real, 'cuda_runtime_api.h')) or \
                    not os.path.exists(os.path.join(real, 'cuda.h')):
                continue
            seen.add(real)
            # the runtime's headers include crt/, which is another package's before CUDA 13
            crt = [real] + glob.glob(os.path.join(os.path.dirname(os.path.dirname(real)), '*', 'include'))
            yield [real] + [c for c in crt if os.path.exists(os.path.join(c, 'crt', 'host_defines.h'))][:1]


def compile_with(cxx, source, includes, shim, out):
    return subprocess.run([cxx, '-std=c++17', '-w', '-I' + shim] + ['-isystem' + i for i in includes] +
                          [source, '-o', out], capture_output=True, text=True)


def main():
    source, shim = sys.argv[1:3]
    cxx = os.environ.get('CXX') or shutil.which('g++') or shutil.which('clang++')
    sets = list(header_sets())
    if not cxx or not sets:
        print('no C++ compiler' if not cxx else 'no CUDA headers found')
        return SKIP
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, 'abi')
        for includes in sets:
            built = compile_with(cxx, source, includes, shim, out)
            if built.returncode:
                print(includes, built.stderr[-3000:])
                return 1
            ran = subprocess.run([out], capture_output=True, text=True)
            print(ran.stdout, end='')
            if ran.returncode:
                return 1
        for name, right, wrong in (('cuda_api.def', '(gpu_ptr *out, size_t size), (out, size), TAKE(DEVICE',
                                    '(gpu_ptr *out, unsigned size), (out, size), TAKE(DEVICE'),
                                   ('cuda_abi.h', 'uint64_t size;\n\tunsigned flags, reserved[16];',
                                    'unsigned flags, reserved[16];\n\tuint64_t size;')):
            changed = os.path.join(tmp, 'changed')
            shutil.rmtree(changed, ignore_errors=True)
            os.mkdir(changed)
            for f in ('cuda_api.def', 'cuda_abi.h'):
                text = open(os.path.join(shim, f)).read()
                if f == name:
                    assert right in text, (name, 'the row to change is gone')
                    text = text.replace(right, wrong, 1)
                open(os.path.join(changed, f), 'w').write(text)
            if compile_with(cxx, source, sets[0], changed, out).returncode == 0:
                print('a wrong', name, 'was not noticed')
                return 1
    return 0


sys.exit(main())
