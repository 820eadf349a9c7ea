//! A response with the headers that all responses have.

/// Default policy for browsers: scripts and style sheets only as files of this server, none inline.
const OWN_FILES: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                         form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Policy for stored pages, which may be anybody's: nothing runs in them.
const STORED: &str = "sandbox allow-downloads; default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; \
                      base-uri 'none'; frame-ancestors 'none'";
/// Policy for pages that carry their own, with hashes of their scripts.
const OF_PAGE: &str = "frame-ancestors 'none'";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub kind: &'static str,
    pub policy: &'static str,
    /// Target of a redirect.
    pub location: Option<String>,
    pub body: Vec<u8>,
}

impl Response {
    /// A response with this media type.
    pub fn new(kind: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response { status: 200, kind, policy: OWN_FILES, location: None, body: body.into() }
    }

    /// A page with its own policy.
    pub fn page(body: impl Into<Vec<u8>>) -> Response {
        Response { policy: OF_PAGE, ..Response::new("text/html; charset=utf-8", body) }
    }

    /// A stored page without scripts.
    pub fn stored(body: impl Into<Vec<u8>>) -> Response {
        Response { policy: STORED, ..Response::page(body) }
    }

    /// One line of text.
    pub fn plain(status: u16, text: impl Into<String>) -> Response {
        let text: String = text.into();
        Response { status, ..Response::new("text/plain; charset=utf-8", text + "\n") }
    }

    /// A redirect on this server.
    pub fn see(location: String) -> Response {
        Response { location: Some(location), ..Response::plain(303, "see there") }
    }

    /// The response as sent.
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
        head.extend((self.status == 405).then_some("Allow: GET, HEAD\r\n"));
        head.extend(self.location.iter().map(|location| format!("Location: {location}\r\n")));
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
