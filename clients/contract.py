"""Makes the contract as clients need it: `contract.py PROTO_FOLDER OUT`, a FileDescriptorSet.

Left out are the options that only the server reads: rules of validation, routes of REST, how a method
shows itself as a tool. With them a client would bring `buf/validate/validate.proto` along, which a
program may have from elsewhere already, and no program may have twice.

Added is the option `idempotency_level` of protobuf's own, which says what may be sent again where no
answer came: NO_SIDE_EFFECTS for what only reads, IDEMPOTENT for what changes nothing more the second
time. A client need not keep a list of methods.
"""

import sys
import tempfile
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

OPTIONS = "repertoire/v1/options.proto"
LEFT_OUT = ("buf/validate/validate.proto", "google/api/annotations.proto", "google/api/http.proto", OPTIONS)
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


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.write_bytes(contract(source).SerializeToString(deterministic=True))
