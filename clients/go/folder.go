package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	pb "repertoire.dev/client/repertoirev1"
)

// Limits of a skill.
const (
	maxFiles = 2048
	maxBytes = 16 << 20
)

// What `repertoire publish` leaves out by its name.
var (
	repositories = []string{".git", ".hg", ".svn"}
	toolFolders  = []string{
		"node_modules", "__pycache__", ".venv", "venv", "target", ".tox", ".nox", ".mypy_cache", ".pytest_cache",
		".ruff_cache", ".gradle", ".idea", "__MACOSX",
	}
	toolFiles   = []string{".DS_Store", "Thumbs.db", "desktop.ini"}
	toolEndings = []string{".pyc", ".pyo", ".swp"}
	keyEndings  = []string{".pem", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk"}
	secretFiles = []string{
		"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".env", ".envrc", ".netrc", "_netrc", ".pypirc", ".pgpass",
		".my.cnf", ".htpasswd", ".git-credentials",
	}
	// Endings of `.env.` files that hold no values of anybody's.
	templates = []string{".example", ".sample", ".template", ".dist", ".defaults", ".md"}
)

func isLeftOut(name string, isFolder bool) bool {
	if slices.Contains(repositories, name) {
		return true
	}
	if isFolder {
		return slices.Contains(toolFolders, name)
	}
	lower := strings.ToLower(name)
	ending := filepath.Ext(lower)
	return slices.Contains(secretFiles, lower) || slices.Contains(keyEndings, ending) ||
		strings.HasPrefix(lower, ".env.") && !slices.Contains(templates, ending) ||
		slices.Contains(toolFiles, name) || slices.Contains(toolEndings, filepath.Ext(name)) ||
		strings.HasPrefix(name, "._") || strings.HasSuffix(name, "~")
}

// Publish uploads the folder of a skill and makes it the active version. The same bytes give
// the version that has them already.
//
// request may say more, such as the skill's id; nil: nothing. Its files and folder are those
// that are read. Links, secrets and what tools make stay on this machine.
func (c *Client) Publish(
	ctx context.Context, folder string, request *pb.PublishSkillRequest,
) (*pb.PublishSkillResponse, error) {
	whole := &pb.PublishSkillRequest{}
	if request != nil {
		whole = proto.CloneOf(request)
	}
	files, err := readFolder(folder)
	if err != nil {
		return nil, err
	}
	whole.Files = files
	if absolute, err := filepath.Abs(folder); err == nil && whole.Folder == "" {
		whole.Folder = filepath.Base(absolute)
	}
	if whole.IdempotencyKey == "" {
		// A retry then answers as the attempt did that was carried out.
		whole.IdempotencyKey = rand.Text()
	}
	return c.Registry.PublishSkill(ctx, whole)
}

// found is a file of a skill.
type found struct {
	path string
	size int64
}

// readFolder reads a skill: first what there is, so that one that is too large costs nothing.
func readFolder(folder string) ([]*pb.File, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, unreadable(err)
	}
	// Nothing outside of it is read, whatever becomes a link meanwhile.
	defer root.Close()
	listed, err := list(root)
	if err != nil {
		return nil, err
	}
	files := make([]*pb.File, 0, len(listed))
	left := int64(maxBytes)
	for _, file := range listed {
		content, err := read(root, file.path, left)
		if err != nil {
			return nil, err
		}
		left -= int64(len(content))
		files = append(files, &pb.File{Path: file.path, Content: content})
	}
	return files, nil
}

func list(root *os.Root) ([]found, error) {
	var files []found
	var total int64
	err := fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return unreadable(err)
		case path == ".":
			return nil
		case isLeftOut(entry.Name(), entry.IsDir()):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !entry.Type().IsRegular():
			return nil
		case entry.Name() == ".skillignore":
			return tooMuch(path+" says what stays out of the skill, which this client does not read",
				"Publish the folder with `repertoire publish`, which does")
		}
		info, err := entry.Info()
		if err != nil {
			return unreadable(err)
		}
		if len(files) == maxFiles {
			return tooMuch(fmt.Sprintf("the skill has more than %d files", maxFiles))
		}
		if total += info.Size(); total > maxBytes {
			return tooMuch(fmt.Sprintf("with %s the skill has more than %d MiB", path, maxBytes>>20))
		}
		files = append(files, found{path, info.Size()})
		return nil
	})
	if err == nil && len(files) == 0 {
		err = tooMuch("the folder has no file of a skill", "A skill is a folder with a SKILL.md")
	}
	return files, err
}

// read reads no more than there may be, whatever the file said of its size.
func read(root *os.Root, path string, left int64) ([]byte, error) {
	file, err := root.Open(filepath.FromSlash(path))
	if err != nil {
		return nil, unreadable(err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, left+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if int64(len(content)) > left {
		return nil, tooMuch(fmt.Sprintf("with %s the skill has more than %d MiB", path, maxBytes>>20))
	}
	return content, nil
}

func tooMuch(message string, next ...string) error {
	return local("SKILL_INVALID", codes.InvalidArgument, message, nil, next...)
}

func unreadable(err error) error {
	if known := (*Error)(nil); errors.As(err, &known) {
		return err
	}
	return local("LOCAL_FILE_FAILED", codes.FailedPrecondition, err.Error(), err)
}
