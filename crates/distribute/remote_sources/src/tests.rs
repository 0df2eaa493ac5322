//! Places with skills, each played by a small server on loopback.

mod archives;
mod double;
mod github;
mod places;
mod repertoire;
mod requests;
mod trees;
mod well_known;

use super::*;
use double::{Double, Reply};
use egress::Egress;
use sources::testing::{is_unchanged, listing, paths, texts, work};

const SKILL: &str = "---\nname: x\ndescription: For a test.\n---\nDo it.\n";

fn loopback() -> Egress {
    Egress::permitting(&["127.0.0.1"]).expect("networks")
}

/// A `.tar.gz` of regular files.
fn tar_gz(files: &[(&str, &[u8])]) -> Vec<u8> {
    let packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut archive = tar::Builder::new(packer);
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        // As it is: the safe way refuses hostile names.
        let name = header.as_gnu_mut().expect("a header");
        name.name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append(&header, *content).expect("an entry");
    }
    archive
        .into_inner()
        .expect("a tar")
        .finish()
        .expect("a gzip")
}

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    use std::io::Write as _;
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (path, content) in files {
        let options = zip::write::SimpleFileOptions::default();
        archive.start_file(*path, options).expect("an entry");
        archive.write_all(content).expect("content");
    }
    archive.finish().expect("a zip").into_inner()
}
