//! Parses the head of a request strictly: anything but a plain GET or HEAD of a path is refused.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// Components of the path, each decoded separately: one that contains a slash matches nothing.
    pub path: Vec<String>,
    /// Parameters of the query, in order.
    pub query: Vec<(String, String)>,
}

impl HttpRequest {
    /// The first non-empty value of this name.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }
}

/// HTTP status and reason of a refusal.
pub(super) type Refusal = (u16, &'static str);

const BAD: Refusal = (400, "not a request that this server understands");

/// Parses the lines before the empty one: the request, true for HEAD, and the host that it addresses.
pub(super) fn parse(head: &[u8]) -> Result<(HttpRequest, bool, String), Refusal> {
    let text = std::str::from_utf8(head).map_err(|_| BAD)?;
    let mut lines = text.split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = words.as_slice() else { return Err(BAD) };
    let is_head = match *method {
        "GET" => false,
        "HEAD" => true,
        _ => return Err((405, "this server only reads: GET and HEAD")),
    };
    if !matches!(*version, "HTTP/1.1" | "HTTP/1.0") {
        return Err((505, "this server speaks HTTP/1.1"));
    }
    let mut hosts = lines.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim().to_owned())
    });
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err((400, "a request must have one Host header"));
    };
    let request = target_of(target).ok_or(BAD)?;
    Ok((request, is_head, host))
}

fn target_of(target: &str) -> Option<HttpRequest> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = path.strip_prefix('/')?;
    let parts = path.split('/').filter(|part| !part.is_empty()).map(decoded);
    let query = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decoded(&name.replace('+', " "))?, decoded(&value.replace('+', " "))?))
    });
    Some(HttpRequest { path: parts.collect::<Option<_>>()?, query: query.collect::<Option<_>>()? })
}

/// Percent-decoded text; `None` if it is not UTF-8 or contains control characters.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| (byte? as char).to_digit(16);
        bytes.push(match byte {
            b'%' => u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains(char::is_control))
}
