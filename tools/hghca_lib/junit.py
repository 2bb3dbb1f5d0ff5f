# SPDX-License-Identifier: GPL-2.0-or-later
"""Test results as a JUnit file: the form that most continuous integration systems read."""

import re
from xml.etree import ElementTree

# What XML 1.0 cannot hold.
NO_XML = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(path, counts):
    """Write the results of suites.Count objects to a file: a testsuite a suite, a testcase a result."""
    root = ElementTree.Element("testsuites")
    for count in counts:
        suite = ElementTree.SubElement(root, "testsuite", name=count.suite, tests=str(len(count.results)),
                                       failures=str(count.failed))
        for name, seconds, failure in count.results:
            case = ElementTree.SubElement(suite, "testcase", classname=count.suite, name=clean(name),
                                          time=f"{seconds:.3f}")
            if failure is not None:
                said = count.failures[failure]
                ElementTree.SubElement(case, "failure", message=clean(said[0])).text = clean("\n".join(said[1:]))
    ElementTree.ElementTree(root).write(path, encoding="unicode", xml_declaration=True)


def clean(text):
    return NO_XML.sub("?", text)
