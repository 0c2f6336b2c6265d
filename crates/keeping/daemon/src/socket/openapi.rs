//! What the OpenAPI document of the socket says beside the table of requests.

use answers::{SocketProblem, openapi::Api, routes::of};
use schemars::generate::Contract;
use serde_json::json;

use super::{SOCKET, routes::ROUTES};

/// The document (OpenAPI 3.1), pretty, ending with a newline.
pub fn document() -> String {
    let api = Api {
        title: "ringfenced",
        summary: "The daemon's interface on its Unix socket",
        description: format!(
            "Served on {SOCKET}, one request a connection. The peer's credentials, as the \
             kernel reports them, decide who may. Groups are named below the place where they live; a slash in a \
             name may stand as it is or as %2F. Bodies are up to 64 KiB."
        ),
        // a client of another version may get answers without a field that may be null
        answers: Contract::Deserialize,
        problem: of::<SocketProblem>(),
        refused: "Problem, or not done: nothing was changed, unless the detail says what could not be put back",
        part: |name| match name {
            "pid" => (json!({ "type": "integer", "minimum": 1 }), None),
            _ => (json!({ "type": "string" }), Some("The group, for example db/oltp1")),
        },
        writes: "",
    };
    api.document(ROUTES)
}
