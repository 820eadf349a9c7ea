//! `wipefs --no-act --json DEVICE`: the signatures on a block device (util-linux 2.33 and later).

use crate::error::{Error, Result};
use serde::Deserialize;

/// One signature: filesystem, RAID member, LVM volume, partition table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Signature {
    /// Offset on the device, as wipefs prints it: `0x438`.
    pub offset: String,
    /// `ext4`, `LVM2_member`, `linux_raid_member`, `gpt`.
    #[serde(rename = "type")]
    pub kind: String,
    pub uuid: Option<String>,
    pub label: Option<String>,
}

#[derive(Deserialize)]
struct WipefsOutput {
    signatures: Vec<Signature>,
}

/// Reads the list; an empty text, which some versions print for a blank device, is an empty list.
///
/// # Errors
/// Names line and column if the text is not wipefs's JSON.
pub fn parse(text: &str) -> Result<Vec<Signature>> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str::<WipefsOutput>(text)
        .map(|document| document.signatures)
        .map_err(|e| Error::tool(format!("the output of wipefs is not a list of signatures: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    /// From util-linux 2.38.1.
    const EXT4: &str = r#"{
   "signatures": [
      {
         "device": "loop0",
         "offset": "0x438",
         "type": "ext4",
         "uuid": "11111111-2222-3333-4444-555555555555",
         "label": null
      }
   ]
}"#;

    #[test]
    fn a_signature_reads_with_its_uuid() {
        let signatures = parse(EXT4).unwrap();
        assert_eq!(signatures.len(), 1);
        assert_eq!(signatures[0].kind, "ext4");
        assert_eq!(signatures[0].uuid.as_deref(), Some("11111111-2222-3333-4444-555555555555"));
        assert_eq!(signatures[0].label, None);
    }

    #[test]
    fn a_blank_device_has_none() {
        assert_eq!(parse("{\n   \"signatures\": [\n\n   ]\n}\n").unwrap(), []);
        assert_eq!(parse("\n").unwrap(), []);
    }

    #[test]
    fn an_entry_without_a_type_is_refused() {
        let error = parse(r#"{"signatures": [{"offset": "0x0"}]}"#).unwrap_err().to_string();
        assert!(error.contains("type") && error.contains("line 1"), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            drop(parse(&text));
        }
    }
}
