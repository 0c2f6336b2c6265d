//! What the page's OpenAPI document says beside the table of requests.

use answers::{Problem, openapi::Api, routes::of};
use schemars::generate::Contract;
use serde_json::json;

use crate::routes::ROUTES;

/// The document, pretty, ending with a newline.
pub fn document() -> String {
    let api = Api {
        title: "ringfence web",
        summary: "What the pages of ringfence web call",
        description: "Served on loopback to the user who started it, one request a connection. Every path but POST /api/session needs the session's cookie (else 401, kind session_over). Bodies are application/json, up to 5 MiB; every unsafe method needs an Origin that is the page's own. CPUs are counted from 1.0 for one CPU, shares from 0 to 1, memory in bytes, times in milliseconds since 1970 by the host's clock.".to_owned(),
        answers: Contract::Serialize,
        problem: of::<Problem>(),
        refused: "Refused; nothing was changed unless the message says so",
        part: |name| {
            let help = match name {
                "name" => {
                    "The group, such as db/oltp1; encode it whole (encodeURIComponent), slashes may stand as they are"
                }
                _ => "LabResult.id",
            };
            (json!({ "type": "string" }), Some(help))
        },
        writes: "Only with --write (else 403, kind read_only).",
    };
    api.document(ROUTES)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// The pages' types are made from it.
    #[test]
    fn the_document_of_the_pages_is_what_is_served() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/web-api.json");
        let made = super::document();
        if std::env::var_os("RF_BLESS").is_some() {
            fs::write(&path, &made).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap();
        assert!(written == made, "docs/web-api.json is old: RF_BLESS=1 cargo test -p ringfence-web document");
    }
}
