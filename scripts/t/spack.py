# SPDX-License-Identifier: BSD-3-Clause
# Imports the recipe of Spack with as much of Spack 1.x as it needs, and prints for each variant
# asked for what it depends on and with which words it calls make, one a line.
#
#   spack.py PACKAGE.PY PREFIX [+static]
import contextlib
import pathlib
import re
import sys
import types

recipe, prefix, *words = sys.argv[1:]
static = "+static" in words
conditions, facts, variants = [], [], {}

# A name, versions, variants, dependencies: no more of the language of specs is used.
VALUE = r"[\w.,-]+"
SPEC = re.compile(rf"(\^?[a-z][\w-]*)?(@[\d.]*:?[\d.]*)?(\s*([+~]\w+|\w+={VALUE}))*$")


def spec_is_valid(text):
    if not SPEC.match(text):
        sys.exit(f"not a spec: {text!r}")
    return text


@contextlib.contextmanager
def block(condition):
    conditions.append(spec_is_valid(condition))
    yield
    conditions.pop()


def fact(kind, spec, when=None):
    facts.append((kind, spec_is_valid(spec),
                  [*conditions, *([spec_is_valid(when)] if when else [])]))


def variant(name, *, default, description, values=None, multi=False):
    if isinstance(default, bool) != (values is None) or (values and default not in values):
        sys.exit(f"variant {name}: {default!r} is none of {values}")
    variants[name] = default


class Prefix(str):
    def __getattr__(self, name):
        return Prefix(f"{self}/{name}")


class Spec:
    def satisfies(self, text):
        return {"+static": static, "~static": not static}[text]

    def __getitem__(self, name):
        if name not in [spec.split("@")[0].split(" ")[0] for kind, spec, _ in facts
                        if kind == "depends_on"]:
            sys.exit(f"{name} is not among the dependencies")
        return types.SimpleNamespace(prefix=Prefix(f"{prefix}/{name}"))


class MakefilePackage:
    spec = Spec()
    version = "0.2.0"
    prefix = Prefix(f"{prefix}/copper")


def module(name, **names):
    made = sys.modules[name] = types.ModuleType(name)
    made.__dict__.update(names)
    if names:
        made.__all__ = list(names)


# MakefilePackage is no longer among the names of spack.package.
module("spack")
module(
    "spack.package",
    license=lambda name: None,
    version=lambda name, **more: None,
    variant=variant,
    when=block,
    depends_on=lambda spec, when=None, type=("build", "link"): fact("depends_on", spec, when),
    conflicts=lambda spec, when=None, msg=None: fact("conflicts", spec, when),
    make=lambda *arguments: print("check", *arguments, sep="\t"),
    EnvironmentModifications=dict,
)
for part in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
    module(part)
module("spack_repo.builtin.build_systems.makefile", MakefilePackage=MakefilePackage)

space = {"__name__": "package"}
exec(compile(pathlib.Path(recipe).read_text(), recipe, "exec"), space)
package = space["Copper"]()
for condition in [c for _, _, all_of in facts for c in all_of] + [s for kind, s, _ in facts
        if kind == "conflicts"]:
    for name in re.findall(r"(?:^|\s)[+~](\w+)|(?:^|\s)(\w+)=", condition):
        if (name[0] or name[1]) not in [*variants, "platform"]:
            sys.exit(f"no variant {name} for {condition!r}")
for kind, spec, when in facts:
    print(kind, spec, *when, sep="\t")
print("variants", *sorted(variants), sep="\t")
print("build", *package.build_targets, sep="\t")
print("install", *package.install_targets, sep="\t")
package.check()
settings = types.SimpleNamespace(set=lambda name,
                                 value: print("environment", name, value, sep="\t"))
package.setup_run_environment(settings)
