//! Tells the kind of a file, and whether anybody can read it.

use super::lines::Kind;

/// The most bytes of a file that are scanned; a larger one is held.
pub(crate) const SIZE_CAP: usize = 8 * 1024 * 1024;

/// The kind of a file, for the scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Text(Kind),
    /// A picture, font, sound or document: ordinary, and nothing runs it.
    Media,
    /// Runs, or hides what runs.
    Opaque(&'static str),
    /// Its name says that it is media, and it is something else.
    Disguised(&'static str),
}

/// The name of a file, without its folder.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

const MARKDOWN: &[&str] = &["md", "mdx", "markdown", "mdc", "txt", "rst", "adoc", "org"];
const CODE: &str = include_str!("code_endings.txt");
const MEDIA: &[&str] = &[
    "png", "jpg", "jpeg", "gif", "webp", "ico", "bmp", "tiff", "avif", "heic", "mp3", "mp4", "wav",
    "ogg", "webm", "mov", "m4a", "flac", "ttf", "otf", "woff", "woff2", "eot", "pdf", "docx",
    "xlsx", "pptx", "odt", "ods", "odp", "icc", "psd", "glb", "gltf", "stl", "parquet", "npy",
    "sqlite", "db", "msgpack", "dxf", "dotx", "potx", "xltx", "epub", "vsix",
];

/// Tells the kind of a file: by its bytes first, since an attacker chooses its name.
pub(crate) fn content(path: &str, bytes: &[u8], is_text: bool) -> Content {
    let name = file_name(path).to_ascii_lowercase();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_media = MEDIA.contains(&ending);
    if let Some(what) = program(bytes) {
        return if is_media {
            Content::Disguised(what)
        } else {
            Content::Opaque(what)
        };
    }
    if !is_text {
        // The entry of a ZIP with the macros of an Office document. Names in a ZIP are not
        // compressed.
        let has_macros = bytes.windows(14).any(|window| window == b"vbaProject.bin");
        return match archive(bytes) {
            _ if has_macros => Content::Opaque("a document with macros"),
            // Office documents, EPUB and the like are ZIP archives.
            Some(_) if is_media => Content::Media,
            Some(what) => Content::Opaque(what),
            None if is_media || is_picture(bytes) => Content::Media,
            None if ending == "pyc" => Content::Opaque("compiled Python"),
            None => Content::Opaque("a file that is no text"),
        };
    }
    if bytes.starts_with(b"#!") {
        return if is_media {
            Content::Disguised("a script")
        } else {
            Content::Text(Kind::Code)
        };
    }
    Content::Text(match ending {
        _ if model::listed(CODE).any(|code| code == ending) => Kind::Code,
        _ if MARKDOWN.contains(&ending) => Kind::Markdown,
        _ if [
            "makefile",
            "dockerfile",
            "justfile",
            "rakefile",
            "jenkinsfile",
            "vagrantfile",
        ]
        .iter()
        .any(|known| name.starts_with(known)) =>
        {
            Kind::Code
        }
        "" if !name.starts_with('.') && !name.starts_with("license") => Kind::Markdown,
        _ => Kind::Data,
    })
}

/// Recognizes compiled programs.
fn program(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x7F, b'E', b'L', b'F', ..] => Some("a program for Linux"),
        [b'M', b'Z', _, _, ..]
            // Two letters are few: a text may begin with `MZ`, and has no NUL.
            if bytes.len() > 64 && bytes.iter().take(512).any(|byte| *byte == 0) =>
        {
            Some("a program for Windows")
        }
        [0xFE, 0xED, 0xFA, 0xCE | 0xCF, ..] | [0xCE | 0xCF, 0xFA, 0xED, 0xFE, ..] => {
            Some("a program for macOS")
        }
        [0xCA, 0xFE, 0xBA, 0xBE, ..] => Some("a program for macOS or Java"),
        [0, b'a', b's', b'm', ..] => Some("a WebAssembly module"),
        [b'd', b'e', b'x', b'\n', ..] => Some("a program for Android"),
        // The magic number of CPython: two bytes for the version, then CR LF. Since 3.5 the second
        // one is CR as well.
        [_, b'\r', b'\r', b'\n', ..] => Some("compiled Python"),
        [_, _, b'\r', b'\n', ..] if bytes.iter().take(16).any(|byte| *byte == 0) => {
            Some("compiled Python")
        }
        _ => None,
    }
}

fn archive(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [b'P', b'K', 3 | 5 | 7, 4 | 6 | 8, ..] => Some("a ZIP archive"),
        [0x1F, 0x8B, ..] => Some("a gzip archive"),
        [b'7', b'z', 0xBC, 0xAF, ..] => Some("a 7z archive"),
        [b'R', b'a', b'r', b'!', ..] => Some("a RAR archive"),
        [b'B', b'Z', b'h', ..] => Some("a bzip2 archive"),
        [0xFD, b'7', b'z', b'X', b'Z', ..] => Some("an xz archive"),
        [0x28, 0xB5, 0x2F, 0xFD, ..] => Some("a zstd archive"),
        _ if bytes.get(257..262) == Some(b"ustar".as_slice()) => Some("a tar archive"),
        _ => None,
    }
}

fn is_picture(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG")
        || bytes.starts_with(b"\xFF\xD8\xFF")
        || bytes.starts_with(b"GIF8")
        || bytes.starts_with(b"%PDF")
        || bytes.starts_with(b"wOF")
        || bytes.starts_with(b"\0\x01\0\0")
        || bytes.starts_with(b"OTTO")
        || (bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP".as_slice()))
        || bytes.starts_with(b"\0\0\x01\0")
}
