//! The page's files, packed with gzip by the build of `web/`, which CI compares with a fresh one.

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// Its path in a URL.
    pub path: &'static str,
    /// Its type.
    pub content: &'static str,
    /// Its bytes, packed.
    pub packed: &'static [u8],
}

macro_rules! asset {
    ($path:literal, $file:literal, $content:literal) => {
        Asset {
            path: $path,
            content: $content,
            packed: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../web/dist/", $file, ".gz")),
        }
    };
}

/// All of them.
pub const ASSETS: [Asset; 4] = [
    asset!("/", "index.html", "text/html; charset=utf-8"),
    asset!("/app.js", "app.js", "text/javascript; charset=utf-8"),
    asset!("/app.css", "app.css", "text/css; charset=utf-8"),
    asset!("/icon.svg", "icon.svg", "image/svg+xml"),
];

/// The file at a path.
pub fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}
