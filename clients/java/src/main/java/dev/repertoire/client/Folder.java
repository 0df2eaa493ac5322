package dev.repertoire.client;

import com.google.protobuf.ByteString;
import dev.repertoire.v1.File;
import io.grpc.Status;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/** The folder of a skill: its files, without what is no part of it. */
final class Folder extends SimpleFileVisitor<Path> {
  private static final int MAX_FILES = 2048;
  private static final int MAX_BYTES = 16 << 20;

  // What `repertoire publish` leaves out by its name.
  private static final Set<String> REPOSITORIES = Set.of(".git", ".hg", ".svn");
  private static final Set<String> TOOL_FOLDERS =
      Set.of(
          "node_modules", "__pycache__", ".venv", "venv", "target", ".tox", ".nox", ".mypy_cache",
          ".pytest_cache", ".ruff_cache", ".gradle", ".idea", "__MACOSX");
  private static final Set<String> TOOL_FILES = Set.of(".DS_Store", "Thumbs.db", "desktop.ini");
  private static final Set<String> TOOL_ENDINGS = Set.of("pyc", "pyo", "swp");
  private static final Set<String> KEY_ENDINGS = Set.of("pem", "p12", "pfx", "jks", "keystore", "kdbx", "ppk");
  private static final Set<String> SECRETS =
      Set.of(
          "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".env", ".envrc", ".netrc", "_netrc", ".pypirc",
          ".pgpass", ".my.cnf", ".htpasswd", ".git-credentials");
  /** Endings of `.env.` files that hold no values of anybody's. */
  private static final Set<String> TEMPLATES = Set.of("example", "sample", "template", "dist", "defaults", "md");

  private final Path root;
  private final List<Path> files = new ArrayList<>();
  private long total;

  private Folder(Path root) {
    this.root = root;
  }

  /** Reads a skill: first what there is, so that one that is too large costs nothing. */
  static List<File> read(Path folder) {
    Folder found = new Folder(folder);
    try {
      if (!Files.isDirectory(folder)) {
        throw unreadable(folder + " is no folder", null);
      }
      Files.walkFileTree(folder, found);
      if (found.files.isEmpty()) {
        throw refused("the folder has no file of a skill", "A skill is a folder with a SKILL.md");
      }
      List<File> files = new ArrayList<>();
      int left = MAX_BYTES;
      for (Path path : found.files) {
        byte[] content = read(path, left);
        if (content.length > left) {
          throw found.tooLarge(path);
        }
        left -= content.length;
        files.add(File.newBuilder().setPath(found.name(path)).setContent(ByteString.copyFrom(content)).build());
      }
      return files;
    } catch (IOException error) {
      throw unreadable(error.toString(), error);
    }
  }

  /** One byte more than there may be at most, whatever the file said of its size. */
  private static byte[] read(Path path, int left) throws IOException {
    // It may have become a link since.
    try (InputStream file = Files.newInputStream(path, LinkOption.NOFOLLOW_LINKS)) {
      return file.readNBytes(left + 1);
    }
  }

  @Override
  public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes attributes) {
    boolean leftOut = !folder.equals(root) && isLeftOut(folder.getFileName().toString(), true);
    return leftOut ? FileVisitResult.SKIP_SUBTREE : FileVisitResult.CONTINUE;
  }

  @Override
  public FileVisitResult visitFile(Path path, BasicFileAttributes attributes) {
    String name = path.getFileName().toString();
    if (!attributes.isRegularFile() || isLeftOut(name, false)) {
      return FileVisitResult.CONTINUE;
    }
    if (name.equals(".skillignore")) {
      throw refused(
          name(path) + " says what stays out of the skill, which this client does not read",
          "Publish the folder with `repertoire publish`, which does");
    }
    if (files.size() == MAX_FILES) {
      throw refused("the skill has more than " + MAX_FILES + " files");
    }
    total += attributes.size();
    if (total > MAX_BYTES) {
      throw tooLarge(path);
    }
    files.add(path);
    return FileVisitResult.CONTINUE;
  }

  static boolean isLeftOut(String name, boolean isFolder) {
    if (REPOSITORIES.contains(name)) {
      return true;
    }
    if (isFolder) {
      return TOOL_FOLDERS.contains(name);
    }
    String lower = name.toLowerCase(Locale.ROOT);
    String ending = lower.substring(lower.lastIndexOf('.') + 1);
    return SECRETS.contains(lower)
        || lower.startsWith(".env.") && !TEMPLATES.contains(ending)
        || lower.contains(".") && KEY_ENDINGS.contains(ending)
        || TOOL_FILES.contains(name)
        || name.contains(".") && TOOL_ENDINGS.contains(name.substring(name.lastIndexOf('.') + 1))
        || name.startsWith("._")
        || name.endsWith("~");
  }

  private String name(Path path) {
    return root.relativize(path).toString().replace(java.io.File.separatorChar, '/');
  }

  private RepertoireException tooLarge(Path path) {
    return refused("with " + name(path) + " the skill has more than " + (MAX_BYTES >> 20) + " MiB");
  }

  private static RepertoireException refused(String message, String... next) {
    return RepertoireException.local("SKILL_INVALID", Status.Code.INVALID_ARGUMENT, message, null, next);
  }

  private static RepertoireException unreadable(String message, IOException error) {
    return RepertoireException.local("LOCAL_FILE_FAILED", Status.Code.FAILED_PRECONDITION, message, error);
  }
}
