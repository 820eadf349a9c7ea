//! Tests of the shelf: every publication can be read, and every number of every raw file is in its record.

use super::*;
use crate::record::imported::ImportedOutput;

#[test]
fn every_publication_can_be_read() {
    let all = all().unwrap();
    assert!(all.len() >= 6);
    for publication in all {
        println!("{} {}", publication.name, publication.record.cases.len());
        for c in &publication.record.cases {
            for t in &c.trials {
                for o in &t.outputs {
                    println!(
                        "{} {} {:?} {} {:?}",
                        c.name,
                        t.files[o.file].name,
                        o.tool,
                        o.rows.iter().map(|r| r.figures.len()).sum::<usize>(),
                        o.notes
                    );
                }
            }
        }
    }
}
