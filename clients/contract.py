"""Makes the contract as clients in Python, TypeScript and Go need it: `contract.py PROTO_FOLDER OUT`, a
FileDescriptorSet; with `--python FOLDER` also the modules of it, as the package `repertoire_client.v1`.

Left out are the options that only the server reads: rules of validation, routes of REST, how a method
shows itself as a tool. With them a client would bring `buf/validate/validate.proto` along, which a
program may have from elsewhere already, and no program may have twice.

Added is the option `idempotency_level` of protobuf's own, which says what may be sent again where no
answer came: NO_SIDE_EFFECTS for what only reads, IDEMPOTENT for what changes nothing more the second
time. A client need not keep a list of methods.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

OPTIONS = "repertoire/v1/options.proto"
LEFT_OUT = ("buf/validate/validate.proto", "google/api/annotations.proto", "google/api/http.proto", OPTIONS)
PACKAGE = "repertoire.v1"
# As gRPC calls what a stub has for a method.
CALLABLES = {
    "unary_unary": "UnaryUnaryMultiCallable",
    "unary_stream": "UnaryStreamMultiCallable",
    "stream_unary": "StreamUnaryMultiCallable",
    "stream_stream": "StreamStreamMultiCallable",
}
# A session that a lost answer named ends by itself, and costs nothing until then.
AGAIN = {"LoadSkill"}


def compiled(protos):
    """The contract as protoc reads it, with its comments."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "set")
        files = sorted(str(path.relative_to(protos)) for path in protos.glob("repertoire/v1/*.proto"))
        # Google's own types are in the package.
        types = Path(protoc.__file__).parent / "_proto"
        arguments = ["protoc", f"-I{protos}", f"-I{types}", "--include_imports", "--include_source_info"]
        if protoc.main([*arguments, f"--descriptor_set_out={out}", *files]) != 0:
            sys.exit(1)
        return out.read_bytes()


def levels(content):
    """The level of each method by its full name, from the options that are left out afterwards."""
    files = descriptor_pb2.FileDescriptorSet.FromString(content)
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    tool = pool.FindExtensionByName("repertoire.v1.tool")
    http = pool.FindExtensionByName("google.api.http")
    # The options of this pool, which know both extensions.
    options = message_factory.GetMessageClass(pool.FindMessageTypeByName("google.protobuf.MethodOptions"))
    for extension in (tool, http):
        message_factory.GetMessageClass(extension.message_type)
    found = {}
    for file in files.file:
        for service in file.service:
            for method in service.method:
                told = options.FromString(method.options.SerializeToString())
                tools = list(told.Extensions[tool])
                reads = told.Extensions[http].WhichOneof("pattern") == "get"
                level = descriptor_pb2.MethodOptions.IDEMPOTENCY_UNKNOWN
                if reads or (tools and all(option.read_only for option in tools)):
                    level = descriptor_pb2.MethodOptions.NO_SIDE_EFFECTS
                elif method.name in AGAIN or (tools and all(option.idempotent for option in tools)):
                    level = descriptor_pb2.MethodOptions.IDEMPOTENT
                found[f"{file.package}.{service.name}.{method.name}"] = level
    return found


def contract(protos):
    content = compiled(protos)
    known = levels(content)
    files = descriptor_pb2.FileDescriptorSet.FromString(content)
    # Options of others are fields that this message does not know.
    files.DiscardUnknownFields()
    kept = descriptor_pb2.FileDescriptorSet()
    for file in files.file:
        if file.name in LEFT_OUT:
            continue
        dependencies = [name for name in file.dependency if name not in LEFT_OUT]
        del file.dependency[:]
        file.dependency.extend(dependencies)
        for service in file.service:
            for method in service.method:
                level = known[f"{file.package}.{service.name}.{method.name}"]
                if level:
                    method.options.idempotency_level = level
        kept.file.append(file)
    return kept


def python(content, folder):
    """The package of the generated modules. They name one another by the path of their protos, under which
    no program has them here: it may have modules of its own by that name."""
    made = subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", "--descriptor_set_in=/dev/stdin"]
        + [f"--{plugin}_out={folder}" for plugin in ("python", "pyi", "grpc_python")]
        + [file.name for file in content.file if file.package == PACKAGE],
        input=content.SerializeToString(),
    )
    if made.returncode != 0:
        sys.exit(made.returncode)
    package = folder / "v1"
    (folder / "repertoire" / "v1").rename(package)
    (folder / "repertoire").rmdir()
    for module in package.iterdir():
        module.write_text(module.read_text().replace("from repertoire.v1 import", "from repertoire_client.v1 import"))
    lines, stubs, services = [], [], []
    for file in content.file:
        if file.package != PACKAGE:
            continue
        module = Path(file.name).stem
        names = sorted(item.name for item in (*file.message_type, *file.enum_type))
        values = sorted(value.name for enum in file.enum_type for value in enum.value)
        lines += [f"from repertoire_client.v1.{module}_pb2 import {name} as {name}" for name in (*names, *values)]
        for service in file.service:
            stub = f"{service.name}Stub"
            lines.append(f"from repertoire_client.v1.{module}_pb2_grpc import {stub} as {stub}")
            services.append((module, service.name))
            stubs += [f"class {stub}:", "    def __init__(self, channel: grpc.Channel) -> None: ..."]
            for method in service.method:
                kind = "stream" if method.client_streaming else "unary"
                kind += "_stream" if method.server_streaming else "_unary"
                stubs.append(f"    {method.name}: grpc.{CALLABLES[kind]}")
    where = dict(services)
    modules = [f"from repertoire_client.v1 import {module}_pb2 as _{module}" for module in where]
    listed = ", ".join(f"_{module}.DESCRIPTOR.services_by_name[{name!r}]" for module, name in services)
    title = '"""Messages, enums and stubs of the contract."""'
    (package / "__init__.py").write_text("\n".join([title, "", *modules, *lines, "", f"SERVICES = ({listed},)", ""]))
    typed = [line for line in lines if "_pb2_grpc" not in line]
    head = [title, "", "import grpc", "from google.protobuf.descriptor import ServiceDescriptor", *typed]
    last = ["SERVICES: tuple[ServiceDescriptor, ...]", ""]
    (package / "__init__.pyi").write_text("\n".join([*head, "", *stubs, "", *last]))


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:3])
    made = contract(source)
    target.write_bytes(made.SerializeToString(deterministic=True))
    if sys.argv[3:4] == ["--python"]:
        python(made, Path(sys.argv[4]))
