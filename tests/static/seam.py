# SPDX-License-Identifier: GPL-2.0-or-later
"""The transport and the packet format of the device core name nothing of the function (docs/explanation/seam.rst).

The folders of the core are layers, and a file includes no header of a higher one.

Of the function are the names of include/hghca and ernic_hw.h, the register block of commands (HCR), device.h and the
headers of jingzhao/, rsnic/ and ernic/. The names that include/hghca_wire.h defines are the packet format's.
The check proves itself: a name or an include that is put into a file must be found there.
"""

import re

from hghca_lib import repo

CORE = repo.path("qemu-device/core")
# The lowest layer first. Those of FUNCTION are above them, beside each other.
LAYERS = ("wire", "port", "transport")
FUNCTION = ("jingzhao", "rsnic", "ernic")
# They name nothing of the function.
FOLDERS = ("transport", "wire")
WIRE = repo.path("include/hghca_wire.h")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
OF_FUNCTION = re.compile(r"^(?:jingzhao/.*|rsnic/.*|ernic/.*|hghca/.*|hghca_hw\.h|hghca_core\.h|ernic_hw\.h|device\.h)$")
NAME = re.compile(r"\b(?:hghca|HGHCA|ernic|ERNIC)_\w+|\b[hH]cr\b|\bHCR\w*")
DEFINED = re.compile(r"^#define\s+(HGHCA_\w+)|^(?:struct|enum|union) (hghca_\w+)|^\s+(HGHCA_\w+)\s*[=,]", re.MULTILINE)
# What must be found in each file, and what must not.
SPOILT = {
    "HGHCA_CMD_INIT_HCA": "int planted = HGHCA_CMD_INIT_HCA;",
    "hghca_qpc": "struct hghca_qpc *planted;",
    "Hcr": "class Hcr;",
    "jingzhao/hcr.h": '#include "jingzhao/hcr.h"',
    "rsnic/caps.h": '#include "rsnic/caps.h"',
    "ernic/stats.h": '#include "ernic/stats.h"',
    "ERNIC_QPCONF": "int planted = ERNIC_QPCONF;",
    "hghca/cmd.h": '#include "hghca/cmd.h"',
}
SOUND = '// HGHCA_CMD_INIT_HCA\n/* hghca_qpc */\nnamespace hghca {}\n#include "wire/psn.h"\n'


def defined(text):
    """The names that a C header or source defines."""
    return {name for names in DEFINED.findall(COMMENT.sub(" ", text)) for name in names if name}


def named(text, allowed):
    """What of the function a file of the core names."""
    bare = COMMENT.sub(" ", text)
    includes = INCLUDE.findall(bare)
    names = set(NAME.findall(INCLUDE.sub(" ", bare))) - allowed - set(re.findall(r"^#define (\w+)", bare, re.MULTILINE))
    return names | {name for name in includes if OF_FUNCTION.match(name)}


def upward(file, text):
    """The headers of a higher layer that a file of a layer includes; device.h is above them all."""
    return {name for name in INCLUDE.findall(COMMENT.sub(" ", text)) if name == "device.h" or layer_of(name) in above(file)}


def above(file):
    """The layers above that of a file."""
    return (*LAYERS[LAYERS.index(layer_of(file)) + 1:], *FUNCTION)


def layer_of(file):
    return file.partition("/")[0]


def sources(folders):
    """{path in the core: text} of the files of some folders."""
    return {str(path.relative_to(CORE)): path.read_text()
            for folder in folders for path in sorted((CORE / folder).rglob("*")) if path.suffix in (".h", ".cc")}


def check(report, _root):
    allowed = defined(WIRE.read_text())
    texts, layers = sources(FOLDERS), sources(LAYERS)
    bad = [f"{file}: {name}" for file, text in texts.items() for name in sorted(named(text, allowed))]
    report.result(len(texts) > 20 and len(allowed) > 60 and not bad,
                  f"seam: {len(texts)} files of transport and packets name nothing of the function",
                  "\n".join(bad))
    bad = [f"{file}: {name}" for file, text in layers.items() for name in sorted(upward(file, text))]
    report.result(len(layers) > 30 and not bad,
                  f"seam: {len(layers)} files of {', '.join(LAYERS)} include no header of a higher layer",
                  "\n".join(bad))
    missed = [f"{file}: {line}" for file, text in texts.items() for name, line in SPOILT.items()
              if named(f"{text}\n{line}\n", allowed) != named(text, allowed) | {name}]
    missed += [f"{file}: {SOUND}" for file, text in texts.items()
               if named(text + SOUND, allowed) != named(text, allowed)]
    report.result(not missed, "seam: a name or an include of the function is found in each file", "\n".join(missed))
    missed = [f"{file}: {layer}" for file, text in layers.items() for layer in (*LAYERS, *FUNCTION)
              if not tells(file, text, layer)]
    report.result(not missed, "seam: an include of a higher layer is found in each file, and none of another one",
                  "\n".join(missed))


def tells(file, text, layer):
    """Whether an include of a layer that is put into a file is found, if the layer is a higher one."""
    name = f"{layer}/planted.h"
    higher = layer in above(file)
    return upward(file, f'{text}\n#include "{name}"\n') == upward(file, text) | ({name} if higher else set())
