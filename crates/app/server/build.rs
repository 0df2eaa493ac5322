//! Builds the server again when a bundled skill changes: cargo watches only the package.

fn main() {
    println!("cargo:rerun-if-changed=../../../skills");
}
