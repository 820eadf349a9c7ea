//! A response with the headers that every one has.

/// What a browser may do with an answer: use scripts and style sheets of this server alone, none that stand in the
/// page.
const OWN_FILES: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                         form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// What the page itself allows: it carries its policy, with the sums of its scripts.
const OF_PAGE: &str = "frame-ancestors 'none'";

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub kind: &'static str,
    pub policy: &'static str,
    /// Where to go instead.
    pub location: Option<String>,
    pub body: Vec<u8>,
}

impl Response {
    /// An answer of this media type.
    pub fn new(kind: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response { status: 200, kind, policy: OWN_FILES, location: None, body: body.into() }
    }

    /// A page that brings its own policy.
    pub fn page(body: impl Into<Vec<u8>>) -> Response {
        Response { policy: OF_PAGE, ..Response::new("text/html; charset=utf-8", body) }
    }

    /// One line of text.
    pub fn plain(status: u16, text: impl Into<String>) -> Response {
        let text: String = text.into();
        Response { status, ..Response::new("text/plain; charset=utf-8", text + "\n") }
    }

    /// A way to somewhere else on this server.
    pub fn see(location: String) -> Response {
        Response { location: Some(location), ..Response::plain(303, "see there") }
    }

    /// As it is sent.
    pub(super) fn bytes(&self, with_body: bool) -> Vec<u8> {
        let mut head = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nContent-Security-Policy: {}\r\n\
             X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-store\r\nConnection: close\r\n",
            self.status,
            reason(self.status),
            self.kind,
            self.body.len(),
            self.policy
        );
        if self.status == 405 {
            head.push_str("Allow: GET, HEAD\r\n");
        }
        if let Some(location) = &self.location {
            head.push_str(&format!("Location: {location}\r\n"));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        if with_body {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        303 => "See Other",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        421 => "Misdirected Request",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    }
}
